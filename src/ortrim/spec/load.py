"""From a buildspec's file to a `BuildSpec`, or to everything that is wrong with it, said at once."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ortrim.core.buildspec import BuildSpec, LoadedSpec, RuntimeSpec
from ortrim.core.model_spec import ModelSpec, SessionSpec
from ortrim.core.target_spec import Budgets, LeverChoices, TargetSpec
from ortrim.core.targets import TARGETS, meant_by
from ortrim.errors import DiagnosticGroup
from ortrim.spec.document import read_document
from ortrim.spec.plain import plain_copy
from ortrim.spec.problems import Location, Problem, as_error, dotted, shown
from ortrim.spec.semantics import SoundParts, semantic_problems
from ortrim.spec.structure import parse, structure_problems


def load_spec(path: Path) -> LoadedSpec:
    """Return the buildspec of a TOML file, checked as far as that goes without opening a model.

    Raises `SpecError` when there is no TOML to look at, otherwise a `DiagnosticGroup` of one `SpecError` for
    each problem, in the order of the file; `ortrim.spec.problems.REFERENCES` lists what they are.
    """
    return spec_from_data(read_document(path), path)


def spec_from_data(document: dict[str, Any], file: Path) -> LoadedSpec:
    """Return the buildspec of TOML data that was read from `file`.

    Raises `DiagnosticGroup` as `load_spec`.
    """
    named = {"name": _name_from(file), **document}
    unfit: list[Problem] = []
    data = plain_copy(named, (), unfit)
    notes = _with_identifiers(data)
    structure = _without_echoes(structure_problems(BuildSpec, data), unfit)
    rules = semantic_problems(_sound_parts(data, structure), file.parent)
    problems = [*structure, *rules]
    if problems:
        rank = _ranking(document)
        problems.sort(key=lambda problem: rank(problem.location))
        raise DiagnosticGroup(tuple(as_error(_explained(problem, document, file), file) for problem in problems))
    return LoadedSpec(spec=parse(BuildSpec, data), file=file, notes=notes)


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


def _name_from(file: Path) -> str:
    """Return the file's stem as a name; what cannot stand in a name becomes a dash."""
    return re.sub(r"[^a-z0-9._-]+", "-", file.stem.lower()).strip("._-")[:64]


def _explained(problem: Problem, document: dict[str, Any], file: Path) -> Problem:
    """Say that the name is missing, instead of complaining about one that the user did not write."""
    if problem.location != ("name",) or "name" in document:
        return problem
    hint = f"add one; the file's name, {shown(file.name)}, does not make one"
    return Problem(reference="missing-key", location=("name",), what="is missing", hint=hint)


def _without_echoes(structure: tuple[Problem, ...], unfit: list[Problem]) -> list[Problem]:
    """Join both lists; of two problems with one value the more useful stays: an unknown key, then an unfit value."""
    unknown = {problem.location for problem in structure if problem.reference == "unknown-key"}
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
        levers=table(LeverChoices, "levers"),
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
