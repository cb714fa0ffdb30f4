"""The objects of a build tree: which sources they are made from, which symbols they define, and which they need."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ortrim.binaries.objects import own_references, read_object
from ortrim.core.serialization import from_json
from ortrim.core.unit_making import ObjectSymbols
from ortrim.core.unit_paths import symbolic_path
from ortrim.errors import BuildError
from ortrim.executors.paths import JobPaths
from ortrim.tools.command import run

EVERYWHERE: Final = ("${sources}/", "${build}/")
LONGEST_REASON: Final = 300
"""Characters of ninja's own words that are shown."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """An entry of ninja's compilation database: what is made from which file, as far as it matters here."""

    file: str
    output: str


def read_objects(paths: JobPaths, below: tuple[str, ...] = EVERYWHERE) -> tuple[ObjectSymbols, ...]:
    """Read the objects of the tree whose units lie below some folders, with the sources that they are made from.

    By default these are all but those of ortrim's own hooks.

    Raises `BuildError` (`objects-unknown`) when ninja cannot say, `ToolError` when there is no ninja, and as
    `read_object` does for an object that is no ELF file.
    """
    return tuple(
        ObjectSymbols(unit=unit, defined=defined, undefined=undefined)
        for unit, path in _units(paths, below)
        for defined, undefined in [read_object(path)]
    )


def read_own_references(paths: JobPaths, below: str) -> dict[str, frozenset[str]]:
    """Return, by its unit, what each object of the tree below a folder defines and itself refers to by name.

    Raises as `read_objects` does.
    """
    return {unit: own_references(path) for unit, path in _units(paths, (below,))}


def _units(paths: JobPaths, below: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Yield the units below some folders that are compiled, and their objects."""
    places = {"sources": str(paths.sources), "build": str(paths.build), "hooks": str(paths.hooks)}
    for step in _steps(paths):
        path = paths.configured / step.output
        unit = symbolic_path(step.file, str(paths.configured), **places)
        if path.suffix == ".o" and path.is_file() and unit is not None and unit.startswith(below):
            yield unit, path


def undefined_in(objects: Iterable[ObjectSymbols]) -> frozenset[str]:
    """Return the symbols that objects need and none of them defines."""
    defined: set[str] = set()
    undefined: set[str] = set()
    for symbols in objects:
        defined |= symbols.defined
        undefined |= symbols.undefined
    return frozenset(undefined - defined)


def _steps(paths: JobPaths) -> tuple[Step, ...]:
    done = run((paths.tools / "bin" / "ninja", "-t", "compdb"), cwd=paths.configured)
    if done.returncode != 0:
        raise _unknown(paths, (done.stderr or done.stdout).strip() or f"exit code {done.returncode}")
    try:
        return from_json(tuple[Step, ...], done.stdout)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _unknown(paths, f"it printed no compilation database: {first['msg']}") from error


def _unknown(paths: JobPaths, why: str) -> BuildError:
    hint = f"remove the folder {paths.build}, then run the same command again"
    what = "ninja cannot say what the objects of this tree are made from"
    return BuildError("objects-unknown", what, where=str(paths.configured), why=why[:LONGEST_REASON], hint=hint)
