"""What a rule for packages is: one property with its own reference, told as a gate of a report or as a diagnostic."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from ortrim.core.measurements import Gate, Verdict
from ortrim.errors import BinaryError, Diagnostic, DiagnosticGroup

Facts = TypeVar("Facts")
Promise = TypeVar("Promise")
SHOWN: Final = 3
"""How many breaches a gate tells; a diagnostic tells each."""


@dataclass(frozen=True, kw_only=True)
class Breach:
    """One place where a rule is broken: the file of the package, and what was found there."""

    where: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[Facts, Promise]):
    """A property that every package of a kind must have.

    `name` says it, `what` its absence. `doubt` returns why a package cannot be judged by it, empty when it can; `told`
    what was found in one that has it.
    """

    reference: str
    name: str
    what: str
    hint: str
    search: Callable[[Facts, Promise], Iterable[Breach]]
    told: Callable[[Facts], str]
    doubt: Callable[[Facts, Promise], str] = lambda _facts, _promise: ""

    def gate(self, facts: Facts, promise: Promise) -> Gate:
        """Return whether a package has the property."""
        if reason := self.doubt(facts, promise):
            return Gate(name=self.name, verdict=Verdict.NOT_JUDGED, detail=reason)
        found = [f"{breach.where}: {breach.why}" for breach in self.search(facts, promise)]
        if not found:
            return Gate(name=self.name, verdict=Verdict.PASS, detail=self.told(facts))
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        detail = f"{self.reference}: {'; '.join(found[:SHOWN])}{more}"
        return Gate(name=self.name, verdict=Verdict.FAIL, detail=detail)

    def diagnostics(self, facts: Facts, promise: Promise) -> list[BinaryError]:
        """Return one diagnostic for each place where the rule is broken."""
        if self.doubt(facts, promise):
            return []
        return [
            BinaryError(self.reference, self.what, where=breach.where, why=breach.why, hint=self.hint)
            for breach in self.search(facts, promise)
        ]


def judged(rules: Iterable[Rule[Facts, Promise]], facts: Facts, promise: Promise) -> tuple[Gate, ...]:
    """Return each property that a package must have, and whether it has it."""
    return tuple(rule.gate(facts, promise) for rule in rules)


def broken(rules: Iterable[Rule[Facts, Promise]], gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return the references of the rules whose gates fail, in the order of the gates."""
    references = {rule.name: rule.reference for rule in rules}
    return tuple(references[gate.name] for gate in gates if gate.verdict is Verdict.FAIL)


def require_kept(rules: Iterable[Rule[Facts, Promise]], facts: Facts, promise: Promise) -> None:
    """Refuse a package that is not fit to ship. Raises a `DiagnosticGroup` of `BinaryError`, one for each breach."""
    found: tuple[Diagnostic, ...] = tuple(breach for rule in rules for breach in rule.diagnostics(facts, promise))
    if found:
        raise DiagnosticGroup(found)


def some(names: Iterable[str], most: int = 5) -> str:
    """Return the first names of a list, and how many there are when it is longer."""
    shown = list(names)
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} in all)" if len(shown) > most else "")
