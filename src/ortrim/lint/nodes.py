"""Rules about kinds of nodes: control flow, chance, training."""

from collections.abc import Iterator
from typing import Final

from ortrim.core.graph_facts import NodeFacts
from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

CONTROL: Final = ("If", "Loop", "Scan", "SequenceMap")
RANDOM: Final = (
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
)  # fmt: skip


def control_flow(facts: LintFacts) -> Iterator[Shown]:
    """Find operators with graphs inside."""
    for node in facts.graph.nodes:
        if node.operator in CONTROL and node.domain == "ai.onnx":
            yield Shown(place=node.place, words=f"{node.operator} runs graphs of its own")


def random_output(facts: LintFacts) -> Iterator[Shown]:
    """Find operators that make their output by chance."""
    for node in facts.graph.nodes:
        if node.operator in RANDOM and node.domain == "ai.onnx":
            seeded = " from a seed, in an order that depends on the runs before" if node.attribute("seed") else ""
            yield Shown(place=node.place, words=f"{node.operator} draws numbers{seeded}")


def training_mode(facts: LintFacts) -> Iterator[Shown]:
    """Find operators that were exported as they are in training."""
    switched_on = {weight.name for weight in facts.graph.weights if weight.values == (1,)}
    for node in facts.graph.nodes:
        if node.domain == "ai.onnx" and _trains(node, switched_on):
            yield Shown(place=node.place, words=f"{node.operator} is in training mode")


def _trains(node: NodeFacts, switched_on: set[str]) -> bool:
    """Read the attribute of one, and the third input of the other, when the model fixes that."""
    if node.operator == "BatchNormalization":
        return node.attribute("training_mode") == "1"
    return node.operator == "Dropout" and len(node.inputs) > 2 and node.inputs[2].name in switched_on
