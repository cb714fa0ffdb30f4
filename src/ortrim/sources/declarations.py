"""What upstream declares of its dependencies: names, addresses and patches, evaluated by CMake itself.

`cmake/external/*.cmake` of ONNX Runtime declare by conditions what is fetched and how it is patched, and that changes
from version to version: FetchContent's `eigen` became `Eigen3` in 1.22. CMake evaluates them as a script, with a module
`FetchContent` of ours that prints what is declared; a table of ours would go stale.
"""

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import last_lines, run
from ortrim.base.files import shipped_folder
from ortrim.errors import SourcesError
from ortrim.pins.runtime import upstream_names
from ortrim.sources.archives import read_dependencies

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
    """Return what upstream's `tree` declares for CMake's `system` and `processor`, in order, providers' too."""
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
