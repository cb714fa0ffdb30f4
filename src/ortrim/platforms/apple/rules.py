"""What a rule for xcframeworks is judged by, and how one asks each slice, framework or architecture.

- Rules for the binaries of an xcframework: what dyld, Apple's linker and App Store Connect look at.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ortrim.base.console import counted
from ortrim.binaries.apple import Slice
from ortrim.binaries.macho import MachBuild, MachImage, MachKind
from ortrim.binaries.xcframework import FrameworkFacts, SliceFacts, XcframeworkFacts
from ortrim.verify import gates as verify_gates
from ortrim.verify.gates import BUDGET_GATE, Breach, breaches, some


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
class AppleRule(verify_gates.Rule[XcframeworkFacts, ApplePromise]):
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
    return lambda xcframework, _promise: breaches(
        (each.library or each.identifier or xcframework.file, find(each)) for each in xcframework.slices
    )


def in_each_image(find: Callable[[SliceFacts, MachImage], str]) -> Search:
    """Return a search that asks each architecture of each slice's binary."""
    return lambda xcframework, _promise: breaches(
        (f"{each.binary_path} ({image.architecture})", find(each, image)) for each, image in xcframework.images
    )


def in_each_framework(find: Callable[[SliceFacts, FrameworkFacts], str]) -> Search:
    """Return a search that asks each slice that is a framework."""
    return lambda xcframework, _promise: breaches(
        (each.framework.path or xcframework.file, find(each, each.framework))
        for each in xcframework.slices
        if each.framework is not None
    )


def _without_frameworks(xcframework: XcframeworkFacts, _promise: ApplePromise) -> str:
    return "" if any(each.framework for each in xcframework.slices) else "it contains libraries, not frameworks"


@dataclass(frozen=True, kw_only=True)
class FrameworkRule(AppleRule):
    """A property that every framework in it must have; libraries are not judged."""

    doubt: Doubt = _without_frameworks


def _by_itself(xcframework: XcframeworkFacts, _promise: ApplePromise) -> str:
    return "" if xcframework.plist is not None else "it is a framework by itself"


@dataclass(frozen=True, kw_only=True)
class WholeRule(AppleRule):
    """A property of an xcframework as a whole; a framework by itself is not judged."""

    doubt: Doubt = _by_itself


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


ENTRY: Final = "OrtGetApiBase"
PUBLIC: Final = re.compile(r"OrtGetApiBase|OrtSessionOptionsAppendExecutionProvider_\w+")
OBJECTIVE_C: Final = re.compile(r"ORT[A-Z]\w*|ORTIs\w+|OBJC_(METACLASS|CLASS|IVAR)_\$_ORT[\w.]*")
"""Upstream's Objective-C API, where it is compiled along."""
LINKERS: Final = frozenset({"_mh_dylib_header", "_mh_execute_header", "__dso_handle"})
"""What zig's linker exports of every library; two-level names keep them from clashing."""
SYSTEM: Final = ("/usr/lib/", "/System/Library/")
BESIDE: Final = ("@rpath/", "@loader_path/")
"""How the names of libraries begin that an app brings along."""
LINKABLE: Final = frozenset({MachKind.LIBRARY, MachKind.ARCHIVE, MachKind.OBJECT})


def _other_architectures(each: SliceFacts) -> str:
    found = each.binary.architectures if each.binary else ()
    if each.binary is None or sorted(found) == sorted(each.architectures):
        return ""
    return f"it has {some(found)}, said is {some(each.architectures) or 'nothing'}"


def _other_platform(each: SliceFacts, image: MachImage) -> str:
    found = list(dict.fromkeys(kind_of(build) for build in image.builds))
    allowed = ON_MACS if each.kind in found and each.kind in ON_MACS else {each.kind}
    return "" if allowed.issuperset(found) else f"built for {some(found)}, the slice is {each.kind}"


def _other_exports(_each: SliceFacts, image: MachImage) -> str:
    others = [name for name in image.exported if not is_public(name)]
    return f"{counted(len(others), 'other name')}: {some(others)}" if others else ""


def is_public(name: str) -> bool:
    """Whether a name is of ONNX Runtime's C or Objective-C API, or one that a linker adds by itself."""
    return name in LINKERS or bool(PUBLIC.fullmatch(name) or OBJECTIVE_C.fullmatch(name))


def _other_install_name(each: SliceFacts, image: MachImage) -> str:
    wanted = install_name(each)
    if image.kind is not MachKind.LIBRARY or image.install_name == wanted:
        return ""
    return f"it is {image.install_name or 'empty'}, apps that embed it look for {wanted}"


def install_name(each: SliceFacts) -> str:
    """Return the install name by which an app finds the library of a slice among the frameworks it embeds."""
    if each.framework is None:
        return f"@rpath/{each.binary_path.rsplit('/', 1)[-1]}"
    inner = f"{each.binary_path}/".removeprefix(f"{each.framework.path}/" if each.framework.path else "").rstrip("/")
    return f"@rpath/{each.framework.name}.framework/{inner}"


def _foreign_needs(xcframework: XcframeworkFacts, promise: ApplePromise) -> Iterator[Breach]:
    """Take what an app brings along for there, but not for a package that was promised: it is whole by itself."""
    there = SYSTEM if promise.slices else (*SYSTEM, *BESIDE)
    for each, image in xcframework.images:
        others = [need.name for need in image.needed if not need.weak and not need.name.startswith(there)]
        if others:
            yield Breach(where=f"{each.binary_path} ({image.architecture})", why=f"it needs {some(others)}")


def _newer_than_promised(xcframework: XcframeworkFacts, promise: ApplePromise) -> Iterator[Breach]:
    promised = dict(promise.minimum_os)
    for each, image in xcframework.images:
        limit = numbers(promised.get(each.kind, ""))
        for build in builds_for(each, image):
            if limit and (numbers(build.minimum_os) or ()) > limit:
                why = f"it was built for {build.minimum_os}, promised is {promised[each.kind]}"
                yield Breach(where=f"{each.binary_path} ({image.architecture})", why=why)


def _over_budget(xcframework: XcframeworkFacts, promise: ApplePromise) -> Iterator[Breach]:
    budgets = dict(promise.budgets)
    for each in xcframework.slices:
        size, budget = sum(image.size_bytes for image in each.images), budgets.get(each.identifier)
        if budget is not None and size > budget:
            yield Breach(where=each.binary_path, why=f"{size:,} bytes, the budget is {budget:,}")


def _sizes(xcframework: XcframeworkFacts) -> str:
    return "; ".join(
        f"{each.identifier or each.kind} {each.binary.size_bytes:,} bytes" for each in xcframework.slices if each.binary
    )


BINARY_RULES: Final = (
    AppleRule(
        code="architectures-differ",
        name="architectures",
        what="the slice declares other architectures than its binary has",
        hint="write SupportedArchitectures from what `lipo -archs` says",
        search=in_each_slice(_other_architectures),
        told=lambda it: "; ".join(
            f"{each.identifier or it.file}: {', '.join(each.architectures)}" for each in it.slices
        ),
    ),
    AppleRule(
        code="platform-differs",
        name="platform of the load commands",
        what="Xcode would refuse to link it: building for one platform, but linking in a library built for another",
        hint="compile with -target ...-ios15.1-simulator (or -macabi) for such a slice",
        search=in_each_image(_other_platform),
        told=in_words(lambda image: some(build.words for build in image.builds)),
    ),
    AppleRule(
        code="platform-unsaid",
        name="every object declares its platform",
        what="the linker would treat it as an object of an unknown platform",
        hint="compile assembly, too, with -target; ld -r takes -platform_version",
        search=in_each_image(
            lambda _, image: (
                f"{image.unmarked} of {counted(image.objects, 'object')} say nothing" if image.unmarked else ""
            )
        ),
    ),
    AppleRule(
        code="not-a-library",
        name="libraries only",
        what="an app cannot link this",
        hint="link with -dynamiclib, or join objects with libtool -static",
        search=in_each_image(lambda _, image: "" if image.kind in LINKABLE else f"it is of the kind: {image.kind}"),
    ),
    AppleRule(
        code="exports-others",
        name="public API only",
        what="a second abseil or protobuf in the app would clash with these names",
        hint="link with -exported_symbols_list; for a static framework prelink with it: ld -r -exported_symbols_list",
        search=in_each_image(_other_exports),
        told=in_words(lambda image: some(name for name in image.exported if name not in LINKERS)),
    ),
    AppleRule(
        code="api-not-exported",
        name=f"{ENTRY} is exported",
        what="no function of ONNX Runtime could be called",
        hint="export the symbols of upstream's own list",
        search=in_each_image(
            lambda _, image: "" if ENTRY in image.exported else f"it exports {some(image.exported) or 'nothing'}"
        ),
    ),
    AppleRule(
        code="bitcode-embedded",
        name="no bitcode",
        what="App Store Connect would refuse the app: ITMS-90482, the executable contains bitcode",
        hint="compile without -fembed-bitcode and -flto objects, or strip it: xcrun bitcode_strip -r",
        search=in_each_image(
            lambda _, image: "it has __LLVM,__bitcode, or objects of bitcode" if image.bitcode else ""
        ),
    ),
    AppleRule(
        code="install-name-wrong",
        name="install name",
        what="dyld would not find it: Library not loaded",
        hint="link with -Wl,-install_name, or change it with install_name_tool -id and sign again",
        search=in_each_image(_other_install_name),
        told=in_words(lambda image: image.install_name),
    ),
    AppleRule(
        code="needed-not-system",
        name="needs libraries of the system only",
        what="dyld would not find these on users' devices: Library not loaded",
        hint="link them statically, or ship them as frameworks with this one",
        search=_foreign_needs,
        told=in_words(lambda image: some(need.name for need in image.needed)),
    ),
    AppleRule(
        code="debug-information-inside",
        name="debug information apart",
        what="every app would carry the debug information",
        hint="make a dSYM with dsymutil, then strip -S",
        search=in_each_image(lambda _, image: "it has __DWARF sections" if image.debug else ""),
    ),
    AppleRule(
        code="uuid-missing",
        name="UUID",
        what="crash reports could not be resolved, and Xcode would not find the dSYM",
        hint="do not link with -no_uuid",
        search=in_each_image(
            lambda _, image: "there is no LC_UUID" if image.kind is MachKind.LIBRARY and not image.uuid else ""
        ),
        told=in_words(lambda image: image.uuid),
    ),
    AppleRule(
        code="built-for-newer-system",
        name="oldest system",
        what="it does not run on the declared minimum system version",
        hint="build it with the deployment target of the buildspec, or raise that",
        search=_newer_than_promised,
        told=in_words(lambda image: some(build.minimum_os for build in image.builds)),
        doubt=lambda _facts, promise: "" if promise.minimum_os else "none was promised",
    ),
    AppleRule(
        code="slice-over-budget",
        name=BUDGET_GATE,
        what="the slice is larger than its budget",
        hint="`invoke size` shows its largest parts",
        search=_over_budget,
        doubt=lambda xcframework, promise: (
            "" if promise.budgets else ": ".join(filter(None, ("there is no budget", _sizes(xcframework))))
        ),
        told=_sizes,
    ),
)
