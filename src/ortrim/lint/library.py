"""Rules about what operators cost in the size of the library."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ortrim.lint.facts import LintFacts
from ortrim.lint.findings import Shown

WORTH_BYTES: Final = 16 * 1024
FEW_NODES: Final = 4
"""What more nodes use is hardly removed."""


def costly_operators(facts: LintFacts) -> Iterator[Shown]:
    """Find operators of few nodes, and of no other model, whose code is large in a finished build."""
    shared = {_shown(domain, name) for domain, name in facts.elsewhere}
    uses = Counter(_shown(node.domain, node.operator) for node in facts.graph.nodes)
    for name, size in facts.library or ():
        if size >= WORTH_BYTES and 0 < uses[name] <= FEW_NODES and name not in shared:
            count = f"{uses[name]} node{'' if uses[name] == 1 else 's'}"
            yield Shown(place=name, words=f"removing {name} ({count}) saves {size / 1024:.0f} KiB of the library")


def _shown(domain: str, name: str) -> str:
    return name if domain == "ai.onnx" else f"{domain}:{name}"
