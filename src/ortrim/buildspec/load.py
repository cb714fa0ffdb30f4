"""From a buildspec's file to a `BuildSpec`, or to everything that is wrong with it, said at once.

- A buildspec's file as TOML data, before anything is known of its keys.
"""

import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ortrim.buildspec.buildspec import (
    Budgets,
    BuildOptionChoices,
    BuildSpec,
    LoadedSpec,
    ModelSpec,
    RuntimeSpec,
    SessionSpec,
    TargetSpec,
)
from ortrim.buildspec.problems import Location, Problem, as_error, dotted, shown, shown_file
from ortrim.buildspec.rules import SoundParts, TargetRules, semantic_problems
from ortrim.buildspec.schema import plain_copy
from ortrim.buildspec.structure import parse, structure_problems
from ortrim.buildspec.targets import TARGETS, meant_by
from ortrim.errors import DiagnosticGroup, SpecError
from ortrim.pins.runtime import exact_version

LARGEST_BYTES: Final = 1 << 20
NOT_A_MODEL: Final = "--spec takes a buildspec, a TOML file that names models; invoke init MODEL.onnx writes one"


def read_document(file: Path) -> dict[str, Any]:
    """Return the TOML data of a file.

    Raises `SpecError` (`spec-missing`, `spec-unreadable`, `spec-too-large`, `not-utf8`, `not-toml`).
    """
    return _parsed(_text(_content(file), shown_file(file)), shown_file(file))


def _content(file: Path) -> bytes:
    where = shown_file(file)
    try:
        status = file.stat()
        if not stat.S_ISREG(status.st_mode):
            raise SpecError("spec-missing", "is not a plain file", where=where, hint=NOT_A_MODEL)
        if status.st_size > LARGEST_BYTES:
            what = f"has {status.st_size:,} bytes; a buildspec has at most {LARGEST_BYTES:,}"
            raise SpecError("spec-too-large", what, where=where, hint=NOT_A_MODEL)
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "check the path of the buildspec"
        raise SpecError("spec-missing", "does not exist", where=where, hint=hint) from error
    except (OSError, ValueError) as error:
        raise SpecError("spec-unreadable", "cannot be read", where=where, why=str(error)) from error


def _text(content: bytes, where: str) -> str:
    """Decode, without the byte order mark that some editors put in front."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"is not UTF-8 text (byte {error.start})"
        hint = f"save the file as UTF-8; {NOT_A_MODEL}"
        raise SpecError("not-utf8", what, where=where, hint=hint) from error


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise SpecError("not-toml", "is nested too deeply to be read", where=where) from error
    except ValueError as error:  # beside TOMLDecodeError, what int() says of a number of over 4,300 digits
        why, place = _split(str(error))
        raise SpecError("not-toml", f"is not TOML {place}".rstrip(), where=where, why=why) from error


def _split(message: str) -> tuple[str, str]:
    """Split tomllib's `Invalid value (at line 1, column 5)` into the cause and the place."""
    match = re.fullmatch(r"(.*) \((at [^()]*)\)", message, flags=re.DOTALL)
    return (match[1], match[2]) if match else (message, "")


def load_spec(path: Path, rules: TargetRules) -> LoadedSpec:
    """Return the buildspec of a TOML file, checked as far as that goes without opening a model.

    `rules` are those for the keys of a target, which depend on its platform. Raises `SpecError` when there is no TOML
    to look at, otherwise a `DiagnosticGroup` of one `SpecError` for each problem, in the order of the file;
    `ortrim.buildspec.problems.ERROR_CODES` lists what they are.
    """
    return spec_from_data(read_document(path), path, rules)


def spec_from_data(document: dict[str, Any], file: Path, rules: TargetRules) -> LoadedSpec:
    """Return the buildspec of TOML data that was read from `file`.

    Raises `DiagnosticGroup` as `load_spec`.
    """
    named = {"name": name_from(file), **document}
    unfit: list[Problem] = []
    data = plain_copy(named, (), unfit)
    notes = _with_identifiers(data)
    structure = _without_echoes(structure_problems(BuildSpec, data), unfit)
    problems = [*structure, *semantic_problems(_sound_parts(data, structure), file.parent, rules)]
    if problems:
        rank = _ranking(document)
        problems.sort(key=lambda problem: rank(problem.location))
        raise DiagnosticGroup(tuple(as_error(_explained(problem, document, file), file) for problem in problems))
    return LoadedSpec(spec=_with_exact_version(parse(BuildSpec, data)), file=file, notes=notes)


def _with_exact_version(spec: BuildSpec) -> BuildSpec:
    """Replace a version's word by the version, which is all that anything later sees."""
    runtime = replace(spec.onnxruntime, version=exact_version(spec.onnxruntime.version))
    return replace(spec, onnxruntime=runtime)


def _with_identifiers(data: dict[str, Any]) -> tuple[str, ...]:
    """Put identifiers in the place of targets' other names, and say which; what could mean several is left."""
    notes = []
    targets = data.get("targets")
    for index, target in enumerate(targets if isinstance(targets, list) else ()):
        name = target.get("id") if isinstance(target, dict) else None
        if isinstance(name, str) and name not in TARGETS and len(meant := meant_by(name)) == 1:
            target["id"] = meant[0]
            notes.append(f"'{dotted(('targets', index, 'id'))}': target {shown(name)} is {meant[0]}")
    return tuple(notes)


def name_from(file: Path) -> str:
    """Return the file's stem as a name; what cannot stand in a name becomes a dash."""
    return re.sub(r"[^a-z0-9._-]+", "-", file.stem.lower()).strip("._-")[:64]


def _explained(problem: Problem, document: dict[str, Any], file: Path) -> Problem:
    """Say that the name is missing, instead of complaining about one that the user did not write."""
    if problem.location != ("name",) or "name" in document:
        return problem
    hint = f"add one; the file's name, {shown(file.name)}, does not make one"
    return Problem(code="missing-key", location=("name",), what="is missing", hint=hint)


def _without_echoes(structure: tuple[Problem, ...], unfit: list[Problem]) -> list[Problem]:
    """Join both lists; of two problems with one value the more useful stays: an unknown key, then an unfit value."""
    unknown = {problem.location for problem in structure if problem.code == "unknown-key"}
    places = {problem.location for problem in unfit}
    kept = [problem for problem in structure if problem.location in unknown or not _at_or_below(problem, places)]
    return [*kept, *(problem for problem in unfit if not _at_or_below(problem, unknown))]


def _at_or_below(problem: Problem, places: set[Location]) -> bool:
    return any(problem.location[:depth] in places for depth in range(len(problem.location) + 1))


def _sound_parts(data: dict[str, Any], problems: list[Problem]) -> SoundParts:
    """Return what can be looked at further although other parts have problems."""
    unsound = {problem.location[:depth] for problem in problems for depth in (0, 1, 2)}

    def is_sound(place: Location) -> bool:
        return place not in unsound

    def items(kind: Any, key: str) -> tuple[tuple[int, Any], ...]:
        found = data.get(key, ())
        values = enumerate(found) if isinstance(found, list) else ()
        return tuple((index, parse(kind, value)) for index, value in values if is_sound((key, index)))

    def table(kind: Any, key: str) -> Any:
        return parse(kind, data.get(key, {}) if is_sound((key,)) else {})

    return SoundParts(
        runtime=table(RuntimeSpec, "onnxruntime"),
        profile=str(data.get("profile")),
        build_options=table(BuildOptionChoices, "build_options"),
        models=items(ModelSpec, "models"),
        targets=items(TargetSpec, "targets"),
        linkage="static" if data.get("linkage") == "static" else "shared",
        budgets=table(Budgets, "budgets"),
        session=table(SessionSpec, "session"),
    )


def _ranking(document: dict[str, Any]) -> Callable[[Location], tuple[int, ...]]:
    """Return what makes sort keys that follow the order of the document; what is missing comes last in its table."""
    tables: dict[int, dict[str, int]] = {}

    def place_in(data: Any, part: str | int) -> int | None:
        if isinstance(data, dict):
            keys = tables.get(id(data)) or tables.setdefault(id(data), {key: at for at, key in enumerate(data)})
            return keys.get(str(part))
        return part if isinstance(data, list) and isinstance(part, int) and part < len(data) else None

    def rank(location: Location) -> tuple[int, ...]:
        data: Any = document
        ranks: list[int] = []
        for part in location:
            place = place_in(data, part)
            ranks.append((len(data) if isinstance(data, dict | list) else 0) if place is None else place)
            data = None if place is None else data[part]
        return tuple(ranks)

    return rank
