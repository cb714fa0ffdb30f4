"""From a buildspec's file to a `BuildSpec`, or to everything that is wrong with it, said at once."""

import json
import re
import stat
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from ortrim.buildspec import buildspec
from ortrim.buildspec.problems import (
    GONE,
    Location,
    Problem,
    as_error,
    dotted,
    kind,
    listed,
    moved,
    nearest,
    renamed,
    shown,
    shown_file,
)
from ortrim.buildspec.rules import SoundParts, TargetRules, semantic_problems
from ortrim.buildspec.schema import PATTERN_WORDS, known_keys, plain_copy
from ortrim.buildspec.targets import TARGETS, meant_by
from ortrim.errors import DiagnosticGroup, SpecError
from ortrim.pins.runtime import exact_version

WANTED: Final = {
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "path_type": "a string",
    "tuple_type": "an array",
    "dict_type": "a table",
    "dataclass_type": "a table",
}
"""What pydantic wanted when it reports a wrong type, by the type of its finding."""

BOUNDS: Final = {
    "greater_than": ("greater than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}

KIND_KEY: Final = "use"
"""The key that says what kind a table is of, where there are several."""
KIND_KEY_FINDINGS: Final = ("union_tag_invalid", "union_tag_not_found")

Finding = Mapping[str, Any]


def parse(kind_of_value: Any, data: Any) -> Any:
    """Return JSON data as a value of one of the types in `buildspec.buildspec`.

    Raises `pydantic.ValidationError`. JSON rather than Python data is handed over, since strict validation takes a list
    for a tuple and a string for a path only there.
    """
    return _adapter(kind_of_value).validate_json(json.dumps(data))


def structure_problems(kind_of_value: Any, data: Any) -> tuple[Problem, ...]:
    """Return what keeps JSON data from being a value of the type."""
    try:
        parse(kind_of_value, data)
    except ValidationError as error:
        found: dict[Location, list[Finding]] = {}
        for finding in error.errors():
            found.setdefault(_located(finding, data), []).append(finding)
        problems = (_problem(location, findings) for location, findings in found.items())
        return tuple(problem for problem in problems if problem)
    return ()


@cache
def _adapter(kind_of_value: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind_of_value)


def _located(finding: Finding, data: Any) -> Location:
    """Return where in the document a finding is; pydantic adds union members and `[key]` to the way."""
    location = _without_kinds(finding["loc"], data)
    if finding["type"] in KIND_KEY_FINDINGS:
        return (*location, KIND_KEY)
    if finding["type"] == "missing":
        return location
    for depth, part in enumerate(location):
        if data == finding["input"] or not _holds(data, part):
            return location[:depth]
        data = data[part]
    return location


def _without_kinds(location: Location, data: Any) -> Location:
    """Leave out the kinds of tables, the values of their key `use`, which pydantic puts behind their numbers."""
    kept: list[str | int] = []
    for part in location:
        if kept and isinstance(kept[-1], int) and isinstance(data, dict) and data.get(KIND_KEY) == part:
            continue
        kept.append(part)
        data = data[part] if _holds(data, part) else None
    return tuple(kept)


def _holds(data: Any, part: str | int) -> bool:
    return isinstance(data, list) if isinstance(part, int) else isinstance(data, dict) and part in data


def _is_about_key(finding: Finding) -> bool:
    """Whether the key is wrong: one that a type lacks, or one outside the enumeration of a table's keys."""
    if finding["type"] == "literal_error":
        return bool(finding["loc"][-1] == "[key]")
    return bool(finding["type"] == "unexpected_keyword_argument")


def _problem(location: Location, findings: list[Finding]) -> Problem | None:
    first = findings[0]
    if any(_is_about_key(finding) for finding in findings):
        known = known_keys(first["loc"][:-1] if first["type"] == "unexpected_keyword_argument" else location[:-1])
        hint = renamed(str(location[-1]), known) or moved(location)
        hint = hint or nearest(location[-1], known, otherwise=f"the keys here are {listed(known, 'and')}")
        return Problem("unknown-key", location, "is not a known key", hint=hint)
    if first["type"] in {"missing", "union_tag_not_found"}:
        return Problem("missing-key", location, "is missing")
    if all(finding["type"] in WANTED for finding in findings):
        return _wrong_type(location, [WANTED[finding["type"]] for finding in findings], first["input"])
    return _bad_value(location, first)


def _wrong_type(location: Location, wanted: list[str], value: Any) -> Problem:
    table_for_array = wanted == ["an array"] and isinstance(value, dict)
    hint = f"each one begins with [[{location[-1]}]]" if table_for_array and len(location) == 1 else ""
    return Problem("wrong-type", location, f"must be {listed(wanted)}, not {kind(value)}", hint=hint)


def _bad_value(location: Location, finding: Finding) -> Problem | None:
    what, hint = _words(finding)
    if finding["type"] == "too_short":
        what, hint = "is empty", f"add a [[{location[-1]}]] table" if len(location) == 1 else ""
        # pydantic counts only the sound items, so that a list of one unsound model is "too short" as well
        if finding["input"]:
            return None
    of_other_type = finding["type"] == "literal_error" and not isinstance(finding["input"], str)
    code = "wrong-type" if of_other_type else "bad-value"
    return Problem(code, location, what, hint=hint)


def _words(finding: Finding) -> tuple[str, str]:
    value, context = finding["input"], finding.get("ctx", {})
    if finding["type"] == "union_tag_invalid":
        kinds = context["expected_tags"].split("'")[1::2]
        quoted = listed([repr(kind) for kind in kinds])
        return f"must be {quoted}, not {shown(context['tag'])}", nearest(context["tag"], kinds)
    if finding["type"] == "literal_error":
        gone = GONE.get(str(value), "") if "providers" in finding["loc"] else ""
        hint = gone or nearest(value, context["expected"].split("'")[1::2])
        return f"must be {context['expected']}, not {shown(value)}", hint
    if finding["type"] == "string_too_short":
        return "is empty", ""
    if finding["type"] == "string_pattern_mismatch":
        return f"must be {PATTERN_WORDS[context['pattern']]}, not {shown(value)}", ""
    if finding["type"] in BOUNDS:
        words, key = BOUNDS[finding["type"]]
        return f"must be {words} {context[key]:.10g}, not {shown(value)}", ""
    return f"is refused: {finding['msg']}", ""


LARGEST_BYTES: Final = 1 << 20
NOT_A_MODEL: Final = "--spec takes a buildspec, a TOML file that names models; invoke init MODEL.onnx writes one"


def read_document(file: Path) -> dict[str, Any]:
    """Return the TOML data of a file."""
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


def load_spec(path: Path, rules: TargetRules) -> buildspec.LoadedSpec:
    """Return the buildspec of a TOML file, checked as far as that goes without opening a model.

    `rules` are those for the keys of a target, which depend on its platform.
    """
    return spec_from_data(read_document(path), path, rules)


def spec_from_data(document: dict[str, Any], file: Path, rules: TargetRules) -> buildspec.LoadedSpec:
    """Return the buildspec of TOML data that was read from `file`."""
    named = {"name": name_from(file), **document}
    unfit: list[Problem] = []
    data = plain_copy(named, (), unfit)
    notes = _with_identifiers(data)
    structure = _without_echoes(structure_problems(buildspec.BuildSpec, data), unfit)
    problems = [*structure, *semantic_problems(_sound_parts(data, structure), file.parent, rules)]
    if problems:
        rank = _ranking(document)
        problems.sort(key=lambda problem: rank(problem.location))
        raise DiagnosticGroup(tuple(as_error(_explained(problem, document, file), file) for problem in problems))
    spec = parse(buildspec.BuildSpec, data)
    runtime = replace(spec.onnxruntime, version=exact_version(spec.onnxruntime.version))
    return buildspec.LoadedSpec(**{**vars(spec), "onnxruntime": runtime}, file=file, notes=notes)


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
    return Problem("missing-key", ("name",), "is missing", hint=hint)


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
        runtime=table(buildspec.RuntimeSpec, "onnxruntime"),
        profile=str(data.get("profile")),
        build_options=table(buildspec.BuildOptionChoices, "build_options"),
        models=items(buildspec.ModelSpec, "models"),
        targets=items(buildspec.TargetSpec, "targets"),
        linkage="static" if data.get("linkage") == "static" else "shared",
        budgets=table(buildspec.Budgets, "budgets"),
        session=table(buildspec.SessionSpec, "session"),
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
