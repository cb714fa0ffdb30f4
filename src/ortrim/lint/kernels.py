"""Rules about operators that a trimmed runtime, whose one execution provider is the CPU's, cannot run."""

from collections.abc import Iterator

from ortrim.core.graph_facts import NodeFacts
from ortrim.lint.facts import LintFacts, Operator
from ortrim.lint.findings import Shown


def no_cpu_kernel(facts: LintFacts) -> Iterator[Shown]:
    """Find the operator at which loading ended although other kernels of it are there: its types have none."""
    missing = facts.kernels.missing if facts.kernels else None
    if missing is None or facts.kernels is None or missing[0] in facts.kernels.without:
        return
    operator, name = missing
    nodes = [node for node in _nodes(facts, operator) if name in {"", node.name}]
    types = sorted({", ".join(value.element_type or "unknown type" for value in node.inputs) for node in nodes})
    yield Shown(place=name or operator[1], words=f"no CPU kernel of {_words(operator)} for {'; '.join(types) or '?'}")


def other_provider_only(facts: LintFacts) -> Iterator[Shown]:
    """Find operators that upstream has for other execution providers alone."""
    for operator in facts.kernels.without if facts.kernels else ():
        if operator not in (facts.kernels.unheard if facts.kernels else ()):
            yield _shown(facts, operator, "has no CPU kernel, for whatever types")


def unknown_operator(facts: LintFacts) -> Iterator[Shown]:
    """Find operators of which the runtime has never heard."""
    for operator in facts.kernels.unheard if facts.kernels else ():
        yield _shown(facts, operator, f"is not known to ONNX Runtime {facts.runtime.version}")


def _shown(facts: LintFacts, operator: Operator, words: str) -> Shown:
    nodes = list(_nodes(facts, operator))
    place = nodes[0].place if nodes else _words(operator)
    return Shown(place=place, words=f"{_words(operator)} {words} ({len(nodes)} of the nodes)")


def _nodes(facts: LintFacts, operator: Operator) -> Iterator[NodeFacts]:
    return (node for node in facts.graph.nodes if (node.domain, node.operator) == operator)


def _words(operator: Operator) -> str:
    return f"{operator[0]} {operator[1]}"
