"""Rules about what the chosen runtime reads at all: opsets, IR version, size, data beside the model."""

from collections.abc import Iterator
from typing import Final

from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

NEAR: Final = 0.75


def opset(facts: LintFacts) -> Iterator[Shown]:
    """Find opsets that the runtime does not take."""
    newest = {"ai.onnx": facts.runtime.max_opset, "ai.onnx.ml": facts.runtime.max_ml_opset}
    for domain, number in facts.graph.model.opsets:
        most, oldest = newest.get(domain), facts.runtime.oldest_opset if domain == "ai.onnx" else 1
        if number < oldest or (most is not None and number > most):
            taken = f"{oldest} to {most}" if most is not None else f"{oldest} and up"
            words = f"opset {number} of {domain}; ONNX Runtime {facts.runtime.version} takes {taken}"
            yield Shown(place=domain, words=words)


def ir_version(facts: LintFacts) -> Iterator[Shown]:
    """Find an IR version that the runtime does not read."""
    own, most = facts.graph.model.ir_version, facts.runtime.max_ir_version
    if most is not None and own > most:
        words = f"IR version {own}; ONNX Runtime {facts.runtime.version} reads up to {most}"
        yield Shown(place="model", words=words)


def too_large(facts: LintFacts) -> Iterator[Shown]:
    """Find a model that, with its data, is larger than a file in ORT format can be."""
    if (size := _size(facts)) > (most := facts.runtime.max_bytes):
        yield Shown(place="model", words=f"{size:,} bytes with its data; a model in ORT format can have {most:,}")


def nearly_too_large(facts: LintFacts) -> Iterator[Shown]:
    """Find a model that a little growth, as when constants are folded, makes too large."""
    most = facts.runtime.max_bytes
    if most * NEAR < (size := _size(facts)) <= most:
        yield Shown(place="model", words=f"{size:,} bytes with its data, of {most:,} that are possible")


def external_data(facts: LintFacts) -> Iterator[Shown]:
    """Find weights in files beside the model."""
    names = sorted({weight.external for weight in facts.graph.weights if weight.external})
    for name in names:
        count = sum(weight.external == name for weight in facts.graph.weights)
        yield Shown(place=name, words=f"the weights of {count} tensors lie in '{name}' beside the model")


def _size(facts: LintFacts) -> int:
    return facts.graph.model.size_bytes + facts.graph.external_bytes
