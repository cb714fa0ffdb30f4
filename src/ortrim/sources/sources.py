"""Getting the sources, by the one function that others call: which are meant, and one tree out of archives."""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from ortrim.base.archives import unpack
from ortrim.base.build_bundle import site_bundle
from ortrim.base.cache import cache_folder, cached_folder, is_kept
from ortrim.base.command import last_lines, run
from ortrim.base.files import require_space, sha256_of, shipped_folder
from ortrim.base.json import from_json, to_json
from ortrim.base.scripts import packages_folder
from ortrim.errors import NetworkError, SourcesError, ToolError
from ortrim.pins.runtime import (
    OPTIONAL,
    CommitPin,
    ComponentPin,
    RuntimePins,
    SourcePin,
    licence_ids,
    replacements,
    upstream_names,
)
from ortrim.pins.shipped import pin_text, tool_requirements
from ortrim.sources import commits
from ortrim.sources.archives import declared_components, fetch_archives, read_dependencies
from ortrim.sources.debian import is_debian_package, write_data_archive

EVALUATE: Final = shipped_folder("declarations") / "evaluate.cmake"
SECONDS: Final = 60
SYSTEMS: Final = (
    ("Linux", "x86_64"), ("Linux", "aarch64"), ("Android", "aarch64"), ("Darwin", "arm64"), ("iOS", "arm64"),
)  # fmt: skip
"""CMake's names of the systems and processors for which something else is declared."""
LIST: Final = "dependencies.cmake"
PATCHED_BY: Final = re.compile(r"patch( --?[\w=-]+)* -p1 < (?P<file>\S+)")


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A dependency as FetchContent knows it: its name in lower case, its address, its patches in their order."""

    name: str
    url: str
    patches: tuple[Path, ...]


def declarations(cmake: Path, tree: Path, system: str, processor: str) -> tuple[Declaration, ...]:
    """Return what upstream's `tree` declares for CMake's `system` and `processor`, in order, providers' too.

    `cmake/external/*.cmake` declare by conditions what is fetched and how it is patched, and that changes from version
    to version: FetchContent's `eigen` became `Eigen3` in 1.22. CMake evaluates them as a script, with a module
    `FetchContent` of ours that prints what is declared; a table of ours would go stale.
    """
    upstream = tree / "cmake"
    values = (f"-DUPSTREAM={upstream.as_posix()}", f"-DSYSTEM={system}", f"-DPROCESSOR={processor}")
    done = run((cmake, *values, "-P", EVALUATE), cwd=upstream, timeout_seconds=SECONDS)
    lines = [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 2]
    if not lines:
        raise _unknown(tree, "\n".join(done.stderr.strip().splitlines()[:6]) or "no dependency is declared")
    found = {name: Declaration(name=name, url=url, patches=_patches(patch, tree)) for name, url, patch in lines}
    return tuple(found.values())


def _patches(command: str, tree: Path) -> tuple[Path, ...]:
    """Return the files of `patch -p1 < FILE && patch -p1 < FILE`."""
    found = [PATCHED_BY.fullmatch(part.strip()) for part in command.split("&&") if part.strip()]
    if not all(found):
        raise _unknown(tree, f"a dependency is patched by: {command[:300]}")
    return tuple(Path(match["file"]) for match in found if match)


def _unknown(tree: Path, why: str) -> SourcesError:
    what = "the dependencies that this ONNX Runtime declares could not be read"
    hint = "report it with the version of ONNX Runtime; a version that ortrim lists builds"
    return SourcesError("unknown-declarations", what, where=str(tree / "cmake/external"), why=why, hint=hint)


def apply_patches(folder: Path, patches: Iterable[Path]) -> None:
    """Apply upstream's patches to a dependency in place: git what fits exactly, `patch` what fits nearly."""
    for file in patches:
        exact = run(("git", "apply", "-p1", "--ignore-whitespace", "--whitespace=nowarn", file), cwd=folder)
        if exact.returncode == 0:
            continue
        options = ("--batch", "--forward", "--binary", "--ignore-whitespace", "--no-backup-if-mismatch")
        near = run(("patch", *options, "-p1", "-i", file), cwd=folder)
        if near.returncode != 0:
            what = f"upstream's {file.name} does not fit the sources that it is for"
            raise SourcesError("patch-failed", what, where=folder.name, why=last_lines(near.stdout + near.stderr))


def arrange_dependencies(folder: Path, cmake: Path, patched: Mapping[str, bool]) -> None:
    """Patch the unpacked dependencies in `folder` as upstream does, and write the list that CMake takes them from.

    `patched` says by the names of the pins whether upstream's patches are for it. Where systems want other patches,
    each has a folder of its own.
    """
    tree = folder / "onnxruntime"
    components = {each.url: upstream_names().get(each.name, each.name) for each in read_dependencies(tree)}
    places: dict[str, dict[str, str]] = {}
    variants: dict[tuple[str, tuple[Path, ...]], str] = {}
    for system, processor in SYSTEMS:
        for declared in declarations(cmake, tree, system, processor):
            component = components.get(declared.url, "")
            if component in patched:
                patches = declared.patches if patched[component] else ()
                taken = any(component == other for other, _ in variants)
                name = f"{component}-{system.lower()}" if taken else component
                places.setdefault(declared.name, {})[system] = variants.setdefault((component, patches), name)
    for (component, _), name in variants.items():
        if name != component:
            shutil.copytree(folder / component, folder / name, symlinks=True)
    for (_, patches), name in variants.items():
        apply_patches(folder / name, patches)
    lines = [line for name, by_system in places.items() for line in _located(name, by_system)]
    (folder / LIST).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _located(name: str, by_system: Mapping[str, str]) -> Iterable[str]:
    """Yield the lines of CMake that say where a dependency is."""
    variable = f"FETCHCONTENT_SOURCE_DIR_{name.upper()}"
    for place in dict.fromkeys(by_system.values()):
        line = f'set({variable} "${{CMAKE_CURRENT_LIST_DIR}}/{place}" CACHE PATH "" FORCE)'
        if len(set(by_system.values())) == 1:
            yield line
        else:
            systems = "|".join(system for system, found in by_system.items() if found == place)
            yield f'if(CMAKE_SYSTEM_NAME MATCHES "^({systems})$")'
            yield f"  {line}"
            yield "endif()"


AUTO_ORDER: Final = ("upstream", "debian")
LAYOUT_VERSION: Final = 3  # to be raised when the same pins come to another tree
PINS_FILE: Final = "pins.json"  # in a tree: every source with what pins it


@dataclass(frozen=True)
class Resolution:
    """One way to get all sources: ONNX Runtime from `runtime`, its dependencies from archives.

    `dependencies` is None where they are those of `cmake/deps.txt`, with `optional` ones that only some libraries need;
    `known` has their SHA-256 by SHA-1. `suite` is Debian's.
    """

    kind: str
    version: str
    runtime: ComponentPin | CommitPin | commits.Checkout
    dependencies: tuple[ComponentPin, ...] | None = None
    optional: frozenset[str] = frozenset()
    known: Mapping[str, str] = field(default_factory=dict)
    suite: str = ""

    @cached_property
    def folder(self) -> Path:
        """The folder of the cache that holds, or will hold, the unpacked tree."""
        declared = replacements()
        named = [asdict(part) for part in self.dependencies or ()]
        parts = [sorted(self.optional), declared] if self.dependencies is None else named
        identity = [LAYOUT_VERSION, self.version, _identity(self.runtime), parts]
        if isinstance(self.runtime, ComponentPin):
            identity.append(asdict(self.runtime))
        return cache_folder("sources") / hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    @property
    def dependency_kind(self) -> str:
        """The kind of source that dependencies come from."""
        return "upstream" if self.dependencies is None else "debian"

    @property
    def label(self) -> str:
        """The kind in words."""
        same = self.kind == self.dependency_kind
        return self.kind if same else f"{self.kind} with dependencies from {self.dependency_kind}"


def choices_of(
    runtime: RuntimePins, kind: str, path: Path | None, optional: frozenset[str] = frozenset()
) -> tuple[tuple[Resolution, ...], tuple[str, ...]]:
    """Return the ways to get the sources, in the order to try them, and a note for each kind that is not pinned."""
    kinds = AUTO_ORDER if kind == "auto" else (kind,)
    found = {each: _choices_of_kind(runtime, each, path, optional) for each in kinds}
    notes = tuple(f"{each}: not pinned for ONNX Runtime {runtime.version}" for each in kinds if not found[each])
    choices = tuple(choice for each in kinds for choice in found[each])
    if not choices:
        what = f"the sources of ONNX Runtime {runtime.version} are not pinned, so they cannot be checked"
        hint = f"where the network reaches upstream, run: invoke pins.update --version {runtime.version}"
        raise SourcesError("unpinned-source", what, where=f"source = {kind!r}", why="\n".join(notes), hint=hint)
    return choices, notes


def _choices_of_kind(
    runtime: RuntimePins, kind: str, path: Path | None, optional: frozenset[str]
) -> tuple[Resolution, ...]:
    known = runtime.commit.archives if runtime.commit else {}
    version, debian = runtime.version, runtime.debian
    named = debian.components[1:] if debian else ()
    dependencies = tuple(each for each in named if each.name not in OPTIONAL or each.name in optional)
    if kind == "upstream":
        return (Resolution(kind, version, runtime.commit, None, optional, known),) if runtime.commit else ()
    if kind == "debian":
        return (Resolution(kind, version, debian.components[0], dependencies, suite=debian.suite),) if debian else ()
    checkout = commits.identify(path, version)
    own = Resolution(kind, version, checkout, None, optional, known)
    return (own, Resolution(kind, version, checkout, dependencies, suite=debian.suite)) if debian else (own,)


def _identity(part: ComponentPin | CommitPin | commits.Checkout) -> str:
    match part:
        case ComponentPin():
            return part.sha256
        case CommitPin():
            return part.commit
        case commits.Checkout():
            return part.digest


LICENCES_FOLDER: Final = "licences"
EMPTY_COMPONENTS: Final = ("utf8_range", "kleidiai")
"""Components that upstream's build files name, but that nothing of protobuf 21.12 or XNNPACK needs: empty folders."""


@dataclass(frozen=True, kw_only=True)
class SourceTree:
    """Unpacked sources: `folder` holds `onnxruntime`, `abseil_cpp` and so on, whatever the kind.

    `notes` says which kinds `auto` passed over and why; `resolution` is what the cache has it of, None elsewhere.
    """

    folder: Path
    kind: str
    pins: tuple[SourcePin, ...]
    notes: tuple[str, ...] = ()
    resolution: Resolution | None = None


def licences(tree: SourceTree) -> tuple[tuple[str, str, Path], ...]:
    """Return (component, SPDX licence identifier, file with the licence's text) for third-party notices."""
    return tuple((pin.name, pin.licence, tree.folder / LICENCES_FOLDER / f"{pin.name}.txt") for pin in tree.pins)


LICENCE_NAMES: Final = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENSE.MIT", "COPYING.MPL2", "COPYING")
WORK: Final = ".work"


def lay_out(choice: Resolution, folder: Path, announce: Callable[[str], None]) -> None:
    """Fill `folder` with a subfolder for each component, their licences, and what pins them."""
    work = folder / WORK
    work.mkdir()
    archives: dict[str, Path] = {}
    dependencies = choice.dependencies
    if isinstance(choice.runtime, ComponentPin):
        archives = fetch_archives((choice.runtime, *(dependencies or ())), choice.suite, announce)
    require_space(folder.parent, UNPACKED_BYTES, "unpacking the sources")
    match choice.runtime:
        case ComponentPin():
            _lay_out_component(choice.runtime, archives[choice.runtime.name], folder / "onnxruntime", work)
        case CommitPin():
            commits.fetch_commit(choice.runtime, folder / "onnxruntime", work, announce)
        case commits.Checkout():
            commits.copy_checkout(choice.runtime, folder / "onnxruntime", work / "checkout")
    commits.check_version(folder / "onnxruntime", choice.version)
    if dependencies is None:
        dependencies = declared_components(read_dependencies(folder / "onnxruntime"), choice.known, choice.optional)
    archives = archives or fetch_archives(dependencies, choice.suite, announce)
    announce("unpack the sources")
    for component in dependencies:
        _lay_out_component(component, archives[component.name], folder / component.name, work)
    for name in EMPTY_COMPONENTS:
        (folder / name).mkdir()
    patched = {component.name: component.origin == "url" for component in dependencies}
    arrange_dependencies(folder, _cmake(), patched | dict.fromkeys(EMPTY_COMPONENTS, False))
    pins = [
        SourcePin(
            name="onnxruntime", version=choice.version, kind=choice.kind, digest=_identity(choice.runtime),
            licence=licence_ids()["onnxruntime"],
        ),
    ]  # fmt: skip
    for part in dependencies:
        digest, kind = part.sha256 or sha256_of(archives[part.name]), choice.dependency_kind
        pins.append(SourcePin(name=part.name, version=part.version, kind=kind, digest=digest, licence=part.licence))
    (folder / LICENCES_FOLDER).mkdir()
    for pin in pins:
        _settle_licence(folder, pin.name, pin.licence)
    (folder / PINS_FILE).write_text(to_json(tuple(pins)), encoding="utf-8", newline="\n")
    shutil.rmtree(work)


def _cmake() -> Path:
    """Return the toolchain's CMake; on Windows, for which other tools have no wheel, CMake comes alone."""
    tools = tool_requirements()
    if os.name != "nt":
        return packages_folder("tools", tools) / "cmake" / "data" / "bin" / "cmake"
    (alone,) = re.findall(r"^cmake==.*\\\n(?:.*\\\n)*.*\n", tools, re.MULTILINE)
    return packages_folder("cmake", alone) / "cmake" / "data" / "bin" / "cmake.exe"


UNREAD: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"onnxruntime": commits.LEFT_OUT, "onnx": ("onnx/backend/test",), "xnnpack": ("bench", "doc", "test")}
)
"""Folders that no build reads: of 22,300 files 9,500, without XNNPACK's."""


def _lay_out_component(component: ComponentPin, archive: Path, folder: Path, work: Path) -> None:
    if is_debian_package(archive):
        data = work / f"{component.name}.data"
        write_data_archive(archive, data)
        archive = data
    is_zip = component.origin == "url"
    without = UNREAD.get(component.name, ())
    unpack(archive, folder, strip=component.strip, members=dict(component.take), without=without, zip_links=is_zip)
    if component.interface is not None:
        (folder / "CMakeLists.txt").write_text(
            f"add_library(ortrim_{component.name} INTERFACE)\n"
            f"add_library({component.interface} ALIAS ortrim_{component.name})\n"
            f"target_include_directories(ortrim_{component.name} INTERFACE ${{CMAKE_CURRENT_SOURCE_DIR}}/include)\n",
            encoding="utf-8",
        )


def _settle_licence(folder: Path, name: str, licence: str) -> None:
    """Copy a component's licence text to where `licences` looks; an archive may lack it, so known ones travel along."""
    destination = folder / LICENCES_FOLDER / f"{name}.txt"
    found = next((folder / name / each for each in LICENCE_NAMES if (folder / name / each).is_file()), None)
    text = pin_text(f"licences/{licence}.txt") if found is None else None
    if found is not None:
        shutil.copyfile(found, destination)
    elif text is not None:
        destination.write_text(text, encoding="utf-8", newline="\n")
    else:
        raise SourcesError("licence-missing", f"the sources of {name} hold no licence text", where=name)


UNPACKED_BYTES: Final = 492_000_000  # the most that the sources of 1.21.0 take while they are unpacked


def fetch_sources(
    runtime: RuntimePins,
    kind: str,
    path: Path | None = None,
    announce: Callable[[str], None] = lambda _: None,
    *,
    optional: frozenset[str] = frozenset(),
    unread: bool = False,
) -> SourceTree:
    """Return the unpacked sources of a version, fetching and checking what is not in the cache.

    `kind` is `upstream`, `debian`, `path` (a checkout) or `auto`: the first that is pinned and works. `optional` names
    what only some libraries need. A tree in the cache is checked unless it is to stay `unread` until `sound_sources` is
    asked for it. `announce` gets each longer step.
    """
    choices, notes = choices_of(runtime, kind, path, optional)
    cached = next((choice for choice in choices if choice.folder.is_dir()), None)
    if cached is not None and (unread or is_kept(cached.folder, large=True)):
        with suppress(OSError, ValidationError):  # a tree that is not whole is made anew
            return _tree(cached, () if kind != "auto" else (*notes, f"{cached.label}: taken from the cache"))
    return _first_that_works(choices, notes if kind == "auto" else (), announce)


def why_absent(runtime: RuntimePins, optional: frozenset[str]) -> str:
    """Return why the sources of a version cannot be had here, empty if they can, as far as one question tells.

    `optional` is as `fetch_sources` has it.
    """
    if (bundle := site_bundle()) is not None:
        return "" if bundle.manifest.version == runtime.version else "the bundle is for another version"
    try:
        choices, _ = choices_of(runtime, "auto", None, optional)
    except SourcesError as error:
        return error.what
    if any(choice.folder.is_dir() or choice.kind == "debian" for choice in choices):
        return ""
    return "" if runtime.commit is None else commits.why_silent(runtime.commit.repository)


def sound_sources(tree: SourceTree, announce: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of a tree, unpacked anew when it is not what it was."""
    if tree.resolution is not None:
        _publish(tree.resolution, announce)
    return tree.folder


def _publish(choice: Resolution, announce: Callable[[str], None]) -> None:
    cached_folder(choice.folder, lambda folder: lay_out(choice, folder, announce), large=True)


def _first_that_works(
    choices: tuple[Resolution, ...], notes: tuple[str, ...], announce: Callable[[str], None]
) -> SourceTree:
    failures: list[SourcesError | NetworkError | ToolError] = []
    for choice in choices:
        try:
            _publish(choice, announce)
        except (SourcesError, NetworkError, ToolError) as error:
            failures.append(error)
            notes = (*notes, f"{choice.label}: {error.code}: {error.what}")
        else:
            return _tree(choice, notes)
    if len(failures) == 1:
        raise failures[0]
    why = "\n".join([*notes, *(str(failure) for failure in failures)])
    hint = "let this machine reach upstream, or name a mirror of it: ORTRIM_MIRRORS='https://github.com/=https://...'"
    raise SourcesError("no-source-works", "none of the pinned sources could be fetched", why=why, hint=hint)


def _tree(choice: Resolution, notes: tuple[str, ...]) -> SourceTree:
    pins = from_json(tuple[SourcePin, ...], (choice.folder / PINS_FILE).read_bytes())
    return SourceTree(folder=choice.folder, kind=choice.kind, pins=pins, notes=notes, resolution=choice)
