"""What a rule for xcframeworks is judged by, and how one asks each slice, framework or architecture."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ortrim.console import counted
from ortrim.core.apple import Slice
from ortrim.core.macho import MachBuild, MachImage
from ortrim.core.xcframework import FrameworkFacts, SliceFacts, XcframeworkFacts
from ortrim.verify import rules
from ortrim.verify.rules import Breach


@dataclass(frozen=True, kw_only=True)
class ApplePromise:
    """What an xcframework was made to keep; what is empty was not promised.

    `minimum_os` is the oldest system of each kind of slice (`ios`, `ios-simulator`, `macos`), `version` that of ONNX
    Runtime. `budgets` are the most bytes of a slice's architectures together, by its identifier. `package_swift` is the
    text of the Package.swift beside the archive.
    """

    slices: tuple[Slice, ...] = ()
    minimum_os: tuple[tuple[str, str], ...] = ()
    version: str = ""
    budgets: tuple[tuple[str, int], ...] = ()
    package_swift: str = ""


ON_MACS: Final = frozenset({"macos", "ios-maccatalyst"})
"""The kinds of slice that one library may be for at once, with a load command for each."""
Search = Callable[[XcframeworkFacts, ApplePromise], Iterable[Breach]]
Doubt = Callable[[XcframeworkFacts, ApplePromise], str]


def _slices(xcframework: XcframeworkFacts) -> str:
    return f"in {counted(len(xcframework.slices), 'slice')}"


@dataclass(frozen=True, kw_only=True)
class Rule(rules.Rule[XcframeworkFacts, ApplePromise]):
    """A property that every xcframework must have."""

    told: Callable[[XcframeworkFacts], str] = _slices


def in_words(tell: Callable[[MachImage], str]) -> Callable[[XcframeworkFacts], str]:
    """Return what tells a rule's finding: what `tell` says of the architectures, each word once for a slice.

    When all slices say the same it is said once; when none says anything, how many there are.
    """

    def told(xcframework: XcframeworkFacts) -> str:
        found = [(each, _joined(filter(None, map(tell, each.images)))) for each in xcframework.slices]
        said = {word for _, word in found}
        if len(said) < 2:
            return "".join(said) or _slices(xcframework)
        return "; ".join(f"{each.identifier or each.kind}: {word}" for each, word in found if word)

    return told


def _joined(words: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(words))


def in_each_slice(find: Callable[[SliceFacts], str]) -> Search:
    """Return a search that asks each slice; `find` returns what is wrong with one, empty when nothing is."""

    def search(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
        for each in xcframework.slices:
            if why := find(each):
                yield Breach(where=each.library or each.identifier or xcframework.file, why=why)

    return search


def in_each_image(find: Callable[[SliceFacts, MachImage], str]) -> Search:
    """Return a search that asks each architecture of each slice's binary."""

    def search(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
        for each, image in xcframework.images:
            if why := find(each, image):
                yield Breach(where=f"{each.binary_path} ({image.architecture})", why=why)

    return search


def in_each_framework(find: Callable[[SliceFacts, FrameworkFacts], str]) -> Search:
    """Return a search that asks each slice that is a framework."""

    def search(xcframework: XcframeworkFacts, _promise: ApplePromise) -> Iterator[Breach]:
        for each in xcframework.slices:
            if each.framework is not None and (why := find(each, each.framework)):
                yield Breach(where=each.framework.path or xcframework.file, why=why)

    return search


def without_frameworks(xcframework: XcframeworkFacts, _promise: ApplePromise) -> str:
    """Return why rules for frameworks do not apply, empty when they do."""
    return "" if any(each.framework for each in xcframework.slices) else "it holds libraries, not frameworks"


def by_itself(xcframework: XcframeworkFacts, _promise: ApplePromise) -> str:
    """Return why rules for xcframeworks do not apply, empty when they do."""
    return "" if xcframework.plist is not None else "it is a framework by itself"


def kind_of(build: MachBuild) -> str:
    """Return the kind of slice that a load command is for: `ios-simulator`."""
    return f"{build.platform}-{build.variant}".rstrip("-")


def builds_for(each: SliceFacts, image: MachImage) -> tuple[MachBuild, ...]:
    """Return what an architecture says of the system of its slice, and not of another that it is for as well."""
    return tuple(build for build in image.builds if kind_of(build) == each.kind)


def numbers(version: str) -> tuple[int, ...] | None:
    """Return a version's numbers without zeros at the end, so that 15 is 15.0; None for what is no version."""
    parts = version.split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        return None
    found = [int(part) for part in parts]
    while found and not found[-1]:
        found.pop()
    return tuple(found)
