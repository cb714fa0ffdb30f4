"""Rules about weights."""

from collections.abc import Iterator
from typing import Final

from ortrim.core.graph_facts import WeightFacts
from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

DOMINANT: Final = 0.5
DOMINANT_BYTES: Final = 1_000_000
WASTED_BYTES: Final = 1024


def dominant(facts: LintFacts) -> Iterator[Shown]:
    """Find a single weight that is half of all or more, and large."""
    total = sum(weight.size_bytes for weight in facts.graph.weights)
    for weight in facts.graph.weights:
        if weight.size_bytes >= max(DOMINANT_BYTES, total * DOMINANT):
            share = f"{weight.size_bytes:,} of {total:,} bytes of weights"
            shape = "x".join(map(str, weight.dimensions))
            yield Shown(place=weight.name, words=f"'{weight.name}' ({weight.element_type} {shape}) is {share}")


def duplicates(facts: LintFacts) -> Iterator[Shown]:
    """Find weights with the same content."""
    groups: dict[str, list[WeightFacts]] = {}
    for weight in facts.graph.weights:
        if weight.digest:
            groups.setdefault(weight.digest, []).append(weight)
    for group in groups.values():
        wasted = sum(weight.size_bytes for weight in group[1:])
        if wasted >= WASTED_BYTES:
            words = f"{len(group)} tensors are alike, {wasted:,} bytes too many: {_names(group)}"
            yield Shown(place=group[0].name, words=words)


def _names(group: list[WeightFacts]) -> str:
    shown = ", ".join(f"'{weight.name}'" for weight in group[:3])
    return f"{shown} and {len(group) - 3} more" if len(group) > 3 else shown
