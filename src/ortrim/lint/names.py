"""Rules about the names of inputs and outputs."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from ortrim.core.models import TensorInfo
from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

MACHINE: Final = re.compile(
    r"\d+"
    r"|(input|output|args?|kwargs|x|var|tensor|l_|getitem|primals|tangents)[._]\d+"
    r"|(onnx|aten|prim|torch_nn|_val)[:_]*\S*[:_]\d+"
    r"|.*::\S*"
    r"|(serving_default_\S*|StatefulPartitionedCall|PartitionedCall)(:\d+)?"
    r"|\S+:\d+"
)
"""What exporters call a value for which the author gave no name: PyTorch's numbers and traces, TensorFlow's ports."""


def unnamed(facts: LintFacts) -> Iterator[Shown]:
    """Find inputs and outputs without a name."""
    for kind, position, value in _ends(facts):
        if not value.name:
            yield Shown(place=f"{kind} {position}", words=f"{kind} {position} has no name")


def machine_named(facts: LintFacts) -> Iterator[Shown]:
    """Find inputs and outputs that an exporter named."""
    for kind, _, value in _ends(facts):
        if MACHINE.fullmatch(value.name):
            yield Shown(place=value.name, words=f"the {kind} is called '{value.name}'")


def _ends(facts: LintFacts) -> Iterator[tuple[str, int, TensorInfo]]:
    model = facts.graph.model
    kinds: Iterable[tuple[str, tuple[TensorInfo, ...]]] = (("input", model.inputs), ("output", model.outputs))
    for kind, values in kinds:
        yield from ((kind, position, value) for position, value in enumerate(values))
