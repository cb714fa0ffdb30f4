"""What a rule for AARs is: one property with its own reference, told as a gate of a report or as a diagnostic."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ortrim.console import counted
from ortrim.core.aar import AarFacts
from ortrim.core.android import PAGE_BYTES, NativeLibrary
from ortrim.core.measurements import Gate, Verdict
from ortrim.errors import BinaryError

SHOWN = 3
"""How many breaches a gate tells; a diagnostic tells each."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What an AAR was made to keep: the least API level, its ABIs, the page size.

    Without `abis` those that it has are right. With `whole_relro` the RELRO part of each library that ortrim links ends
    where a page does.
    """

    api_level: int
    abis: tuple[str, ...] = ()
    page_bytes: int = PAGE_BYTES
    whole_relro: bool = False


@dataclass(frozen=True, kw_only=True)
class Breach:
    """One place where a rule is broken: the file of the AAR, and what was found there."""

    where: str
    why: str


Search = Callable[[AarFacts, Promise], Iterable[Breach]]
Doubt = Callable[[AarFacts, Promise], str]
Tell = Callable[[AarFacts], str]


def _libraries(aar: AarFacts) -> str:
    return f"in {counted(len(aar.libraries), 'file')} of {counted(len(aar.abis), 'ABI')}"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A property that every AAR must have.

    `name` says it, `what` its absence. `doubt` returns why an AAR cannot be judged by it, empty when it can; `told`
    what was found in one that has it.
    """

    reference: str
    name: str
    what: str
    hint: str
    search: Search
    doubt: Doubt = lambda _aar, _promise: ""
    told: Tell = _libraries

    def gate(self, aar: AarFacts, promise: Promise) -> Gate:
        """Return whether an AAR has the property."""
        if reason := self.doubt(aar, promise):
            return Gate(name=self.name, verdict=Verdict.NOT_JUDGED, detail=reason)
        found = [f"{breach.where}: {breach.why}" for breach in self.search(aar, promise)]
        if not found:
            return Gate(name=self.name, verdict=Verdict.PASS, detail=self.told(aar))
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        detail = f"{self.reference}: {'; '.join(found[:SHOWN])}{more}"
        return Gate(name=self.name, verdict=Verdict.FAIL, detail=detail)

    def diagnostics(self, aar: AarFacts, promise: Promise) -> list[BinaryError]:
        """Return one diagnostic for each place where the rule is broken."""
        if self.doubt(aar, promise):
            return []
        return [
            BinaryError(self.reference, self.what, where=breach.where, why=breach.why, hint=self.hint)
            for breach in self.search(aar, promise)
        ]


def in_each_library(find: Callable[[NativeLibrary, Promise], str]) -> Search:
    """Return a search that asks each library; `find` returns what is wrong with one, empty when nothing is."""

    def search(aar: AarFacts, promise: Promise) -> list[Breach]:
        found = ((library, find(library, promise)) for library in aar.libraries)
        return [Breach(where=library.path, why=why) for library, why in found if why]

    return search


def some(names: Iterable[str], most: int = 5) -> str:
    """Return the first names of a list, and how many there are when it is longer."""
    shown = list(names)
    return ", ".join(shown[:most]) + (f", ... ({len(shown)} in all)" if len(shown) > most else "")
