"""What a rule for AARs is judged by, and how one asks each library."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ortrim.console import counted
from ortrim.core.aar import AarFacts
from ortrim.core.android import PAGE_BYTES, NativeLibrary
from ortrim.verify import rules
from ortrim.verify.rules import Breach


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


Search = Callable[[AarFacts, Promise], Iterable[Breach]]


def _libraries(aar: AarFacts) -> str:
    return f"in {counted(len(aar.libraries), 'file')} of {counted(len(aar.abis), 'ABI')}"


@dataclass(frozen=True, kw_only=True)
class Rule(rules.Rule[AarFacts, Promise]):
    """A property that every AAR must have."""

    told: Callable[[AarFacts], str] = _libraries


def in_each_library(find: Callable[[NativeLibrary, Promise], str]) -> Search:
    """Return a search that asks each library; `find` returns what is wrong with one, empty when nothing is."""

    def search(aar: AarFacts, promise: Promise) -> list[Breach]:
        found = ((library, find(library, promise)) for library in aar.libraries)
        return [Breach(where=library.path, why=why) for library, why in found if why]

    return search
