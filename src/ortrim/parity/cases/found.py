"""Cases for a model that has none: sizes and values with which the full runtime runs it, and what they prove."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Final

from ortrim.base.cache import cache_folder, cached_folder
from ortrim.base.console import counted, printable
from ortrim.base.files import code_digest, storage_errors
from ortrim.base.json import from_json, to_data, to_json
from ortrim.base.scripts import SCRIPTS, Python, ScriptCrash, run_script
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.buildspec.problems import Scalar, toml_string
from ortrim.errors import Diagnostic, ModelError, ToolError, VerifyError
from ortrim.models import refusals, states
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.kernels import kernel_diagnostic
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import read_onnx
from ortrim.models.shapes import inlined
from ortrim.parity.cases.guess import Guess, GuessedInput, OpenDimension, guess
from ortrim.parity.compare import compare
from ortrim.parity.coverage import marked_copy
from ortrim.parity.inputs import BEYOND, RECORDED, crash_advice, toml_key
from ortrim.parity.measurements import Coverage, OutputParity, Verdict
from ortrim.parity.reference import References, cases_made, looked_up, reference_outputs
from ortrim.parity.tables import tables_of

SCRIPT: Final = SCRIPTS / "case_search.py"
CODE: Final = (
    SCRIPT,
    SCRIPT.with_name("memory.py"),
    Path(states.__file__),
    *sorted(Path(__file__).parents[1].rglob("*.py")),
)
"""All that decides what is found, and what is said of it."""
SECONDS: Final = 20.0
SECONDS_EACH: Final = 4.0
BETTER_SECONDS: Final = 4.0
"""How long better cases are sought once one runs."""
GRACE_SECONDS: Final = 40.0
"""What loading a large model may take beside."""
MEMORY_BYTES: Final = 8 * 2**30
TIMES_MODEL: Final = 6
MOST_CRASHES: Final = 4
TRYING: Final = re.compile(r"^trying (.*)$", re.MULTILINE)
INDEX: Final = "cases.json"
MARKED: Final = "marked"
"""Where the copy with markers lies during the search."""
TYPICAL: Final = "typical"
"""The case of sizes at which latency means something."""
FIRST_SEEDS: Final = (0, 10, 20)
"""Other random values are tried when those of the cases show less than those of the search did."""
MOST_CASES: Final = 16
MOST_DRAWN: Final = 64
"""How many cases there are at most, and among how many those are chosen that look up further entries of tables."""
LARGEST_TABLE: Final = 2048
MANY_CHOICES: Final = 256
"""Of more than so many, a case names those alone that it has room for."""
MOST_SHOWN: Final = 3
MOST_LISTED: Final = 6
ELEMENT: Final = re.compile(r"\[\d+\]")
"""What follows the name of an output that is a sequence, for each of its elements."""
LONGEST_NAME: Final = 40
LONGEST_SHOWN: Final = 50
LONGEST_WHOLE: Final = 1e15


@dataclass(frozen=True, kw_only=True)
class FoundCases:
    """Cases with which the full runtime runs a model, as a buildspec has them.

    `reasons` say what was chosen and why, a line for each dimension and input; `warnings` what these cases prove
    nothing about. `tries` counts the runs that the search took.
    """

    cases: tuple[CaseSpec, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    coverage: Coverage
    tries: int


@dataclass(frozen=True, kw_only=True)
class _Searched:
    """What the search in the full runtime answered for one guess; `shown` are outputs that show something.

    `unfed` says in the runtime's words why no run goes on from another, if that was tried in vain.
    """

    guess: Guess
    runs: tuple[Mapping[str, Any], ...]
    shown: frozenset[str]
    unfed: str
    tries: int


def found_cases(model: PreparedModel, runtime: FullRuntime, announce: Callable[[str], None]) -> FoundCases:
    """Return cases for a model, sought once for the same model, runtime and code; `announce` gets the reasons."""
    digest = hashlib.sha256(json.dumps([model.name, model.facts.sha256, runtime.version, code_digest(CODE)]).encode())
    destination = cache_folder("found-cases") / f"{model.name}-{digest.hexdigest()[:16]}"

    def fill(temporary: Path) -> None:
        found = _find(model, runtime, temporary)
        with storage_errors(temporary):
            shutil.rmtree(temporary / MARKED, ignore_errors=True)
            (temporary / INDEX).write_text(to_json(found))

    cached_folder(destination, fill)
    found = from_json(FoundCases, (destination / INDEX).read_bytes())
    for line in (*found.reasons, *found.warnings):
        announce(printable(line))
    return found


def _find(model: PreparedModel, runtime: FullRuntime, folder: Path) -> FoundCases:
    searched = _search(model, runtime, folder)
    tried = []
    for first_seed in FIRST_SEEDS:
        cases, reference = _run(model, _cases(searched, first_seed), runtime)
        compared = _with_itself(model, reference)
        warnings = (*_unfed(searched), *_warnings(model, compared, reference.coverage))
        tried.append((cases, reference, warnings))
        unproven = {each.output for each in compared if not _proves(each)}
        if not unproven & searched.shown:
            break
    cases, reference, warnings = min(tried, key=lambda each: len(each[2]))
    if any(each.unread and each.entries <= LARGEST_TABLE for each in reference.coverage.tables):
        cases, reference = _run(model, _reaching(model, cases, runtime, folder), runtime)
        warnings = (*_unfed(searched), *_warnings(model, _with_itself(model, reference), reference.coverage))
    return FoundCases(
        cases=cases,
        reasons=tuple(_reasons(searched, cases)),
        warnings=warnings,
        coverage=reference.coverage,
        tries=searched.tries,
    )


def _reaching(
    model: PreparedModel, cases: tuple[CaseSpec, ...], runtime: FullRuntime, folder: Path
) -> tuple[CaseSpec, ...]:
    """Return the cases, and others like the first that look up entries of tables which no other does."""
    drawn = tuple(replace(cases[0], name=f"draw-{seed}", seed=seed) for seed in range(MOST_CASES, MOST_DRAWN))
    spec = ModelSpec(name=model.name, path=model.path, cases=(*cases, *drawn))
    made = cases_made(model, spec, model.path.parent, lambda: runtime)
    tables, looked = looked_up(model, made, runtime, folder)
    small = {number for number, table in enumerate(tables.read) if table.entries <= LARGEST_TABLE}
    found = {
        case.name: {(number, entry) for number, entries in enumerate(own) if number in small for entry in entries}
        for case, own in zip(made, looked or [()] * len(made), strict=True)
    }
    known = set[tuple[int, int]]().union(*(found[case.name] for case in cases))
    most = set[tuple[int, int]]().union(*found.values())
    while len(cases) < MOST_CASES and most > known:
        best = max(drawn, key=lambda case: len(found[case.name] - known))
        # All that there may be would reach little of a table that a run has no room for.
        if len(found[best.name] - known) * MOST_CASES < len(most - known):
            break
        cases, known = (*cases, best), known | found[best.name]
    return cases


def _run(
    model: PreparedModel, cases: tuple[CaseSpec, ...], runtime: FullRuntime
) -> tuple[tuple[CaseSpec, ...], References]:
    """Return the cases with their outputs; fewer if random values of others led where the model cannot go."""
    for fewer in (cases, tuple(case for case in cases if not case.after)):
        try:
            return fewer, _reference(model, fewer, runtime)
        except (ModelError, VerifyError) as error:
            if len(cases) == 1 or (isinstance(error, VerifyError) and error.code != "reference-failed"):
                raise
    return cases[:1], _reference(model, cases[:1], runtime)


def _reference(model: PreparedModel, cases: tuple[CaseSpec, ...], runtime: FullRuntime) -> References:
    """Run the cases as they will be run when a library is compared; what comes is kept for that."""
    spec = ModelSpec(name=model.name, path=model.path, cases=cases)
    made = cases_made(model, spec, model.path.parent, lambda: runtime)
    return reference_outputs(model, made, runtime, cache_folder("references"))


def _search(model: PreparedModel, runtime: FullRuntime, folder: Path) -> _Searched:
    """Try in the full runtime what is guessed, for each possible number of dimensions if the model leaves that open."""
    tries = 0
    refused: tuple[Guess, Mapping[str, Any]] | None = None
    marked = marked_copy(model.path, folder / MARKED)
    whole = inlined(read_onnx(model.path, model.name), model.name)
    more = {
        "marked": marked.path and str(marked.path),
        "probabilities": marked.probabilities,
        "tables": to_data(tables_of(whole, model.path, folder / MARKED / "tables")),
    }
    guesses = tuple(guess(whole, model.facts))
    for each in guesses:
        answer = _tried(model, runtime, {**to_data(each), **more}, SECONDS / len(guesses), folder)
        tries += answer["tries"]
        if answer["load"]:
            missing = kernel_diagnostic(answer["load"], original=model, runtime=runtime, folder=folder)
            raise missing or refusals.refusal(answer["load"], model, runtime.version)
        if answer["runs"]:
            shown = frozenset(answer["shown"])
            sums = {name: tuple(terms) for name, terms in answer["sums"].items()}
            left = tuple(dimension for dimension in each.dimensions if dimension.name not in sums)
            return _Searched(
                guess=replace(each, dimensions=left, sums=sums),
                runs=tuple(answer["runs"]),
                shown=shown,
                unfed=answer["unfed"],
                tries=tries,
            )
        if refused is None or answer["refusal"]:
            refused = (each, answer["refusal"])
    assert refused is not None
    raise _nothing_found(model, *refused, tries, runtime.version)


def _tried(
    model: PreparedModel, runtime: FullRuntime, what: Mapping[str, Any], seconds: float, folder: Path
) -> dict[str, Any]:
    """Run the script, again without what crashed it; when nothing runs, the last crash is the refusal."""
    python = Python(words=runtime.words, environment=runtime.environment)
    skip: list[str] = []
    refusal: dict[str, Any] = {}
    for _ in range(MOST_CRASHES):
        request = {
            **what,
            "model": str(model.path),
            "seconds": seconds / (1 + len(skip)),
            "seconds_each": SECONDS_EACH,
            "better_seconds": BETTER_SECONDS,
            "memory_bytes": MEMORY_BYTES + TIMES_MODEL * model.facts.size_bytes,
            "skip": skip,
            "beyond": BEYOND.pattern,
        }
        try:
            answer = run_script(python, SCRIPT, request, folder=folder, timeout_seconds=seconds + GRACE_SECONDS)
        except ScriptCrash as crash:
            tried = TRYING.findall(crash.last_lines)
            if not tried:
                raise refusals.crash(
                    crash.ending, refusals.where_of(model), runtime.version, why=crash.last_lines
                ) from crash
            skip.append(tried[-1])
            refusal = {"sizes": json.loads(tried[-1])[0], "ending": crash.ending}
        except ToolError as error:
            if error.code != "tool-timeout":
                raise
            refusal = refusal or {"sizes": {}, "words": error.what}
            break
        else:
            more = {} if answer["runs"] or not skip else {"refusal": refusal}
            return {**answer, "tries": answer["tries"] + len(skip), **more}
    return {"load": "", "runs": [], "tries": len(skip), "refusal": refusal}


def _nothing_found(
    model: PreparedModel, last: Guess, refusal: Mapping[str, Any], tries: int, ort_version: str
) -> Diagnostic:
    if known := refusals.known_refusal(refusal.get("words", ""), model):
        return known
    words = refusals.plain_words(refusal.get("words", ""), model.path, model.name)
    sizes: dict[str, int] = refusal.get("sizes") or {each.name: each.sizes[0] for each in last.dimensions}
    tried = ", ".join(f"{name} = {size}" for name, size in sizes.items()) or "the model's own sizes"
    why = printable(f"{counted(tries, 'run')} tried, the last with {tried}\n{words}".strip())
    if ending := refusal.get("ending"):
        hint = crash_advice(model.facts, ending)
        return refusals.crash(ending, refusals.where_of(model), ort_version, why=why, hint=hint)
    example = _case("default", {"sizes": sizes, "fillings": [{} for _ in last.inputs], "seed": 0}, "", last)
    hint = f"write a case with sizes that the model takes: cases = [{case_toml(example)}]{RECORDED}"
    what = "no sizes and values were found with which the full runtime runs the model"
    return VerifyError("no-case-found", what, where=refusals.where_of(model), why=why, hint=hint)


NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9._-]+")


def _cases(searched: _Searched, first_seed: int) -> tuple[CaseSpec, ...]:
    """Return the runs that were found as a buildspec's cases, each with a name that says what is special in it."""
    sizes, others = (run["sizes"] for run in searched.runs[:2])
    grew = all(others[name] >= size for name, size in sizes.items())
    names = ["first", "second"] if sizes == others else ["small", "larger" if grew else "other"]
    for run in searched.runs[2:]:
        step = sum(before is not None for before in (each["after"] for each in searched.runs[: len(names) + 1]))
        own = f"step-{step + 1}" if run["after"] is not None else _difference(searched.runs[0], run, searched.guess)
        word = TYPICAL if run["typical"] else own
        name = NOT_IN_NAMES.sub("-", word.lower()).strip("-._")[:LONGEST_NAME] or "another"
        free = (f"{name}-{number}" for number in range(2, len(searched.runs) + 2))
        names.append(name if name not in names else next(each for each in free if each not in names))
    seeded = [{**run, "seed": first_seed + number} for number, run in enumerate(searched.runs)]
    after = ("" if run["after"] is None else names[run["after"]] for run in seeded)
    return tuple(_case(*each, searched.guess) for each in zip(names, seeded, after, strict=True))


def _difference(first: Mapping[str, Any], other: Mapping[str, Any], guessed: Guess) -> str:
    for each, before, after in zip(guessed.inputs, first["fillings"], other["fillings"], strict=True):
        if before != after:
            return f"{each.name}-{after['value'] if after['value'] is not None else after['high'] or 'range'}"
    return next((f"{name}-{size}" for name, size in other["sizes"].items() if first["sizes"][name] != size), "")


def _case(name: str, run: Mapping[str, Any], after: str, guessed: Guess) -> CaseSpec:
    sizes: Mapping[str, int] = run["sizes"]
    own = [pair for pair in zip(guessed.inputs, run["fillings"], strict=True) if not (after and pair[0].fed_by)]
    specs = {each.name: _input_spec(each, filling, sizes, run["seed"]) for each, filling in own}
    known = {size for each, _ in own if not _is_placed(each) for size in each.shape if isinstance(size, str)}
    return CaseSpec(
        name=name,
        after=after or None,
        seed=run["seed"],
        dimensions={name: size for name, size in sizes.items() if name in known},
        inputs={name: spec for name, spec in specs.items() if spec != InputSpec()},
    )


def _is_placed(each: GuessedInput) -> bool:
    """Whether a case has to give the whole shape, since the model has no usable name for a dimension of it."""
    return any(size == f"{each.name}[{axis}]" for axis, size in enumerate(each.shape))


def _input_spec(each: GuessedInput, filling: Mapping[str, Any], sizes: Mapping[str, int], seed: int) -> InputSpec:
    whole = tuple(size if isinstance(size, int) else sizes.get(size, 1) for size in each.shape)
    counted_size = filling.get("size_of")
    value = sizes[counted_size] if counted_size else filling.get("value")
    shape = whole if _is_placed(each) else None
    counted_from = filling.get("count_from")
    choices = filling.get("choices")
    room = prod(whole)
    if choices and MANY_CHOICES < len(choices) > room > 0 and not isinstance(choices[0], list):
        choices = [choices[(seed * room + at) % len(choices)] for at in range(room)]
    return InputSpec(
        shape=shape,
        value=value,
        choices=choices and tuple(tuple(each) if isinstance(each, list) else each for each in choices),
        low=filling.get("low"),
        high=filling.get("high"),
        # What a case leaves to the model's axis alone has no name that a buildspec could say.
        count_from=sizes[counted_from] if counted_from and counted_from.endswith("]") else counted_from,
    )


def _reasons(searched: _Searched, cases: tuple[CaseSpec, ...]) -> Iterator[str]:
    for dimension in searched.guess.dimensions:
        yield _dimension_line(dimension, searched)
    for name, terms in searched.guess.sums.items():
        if any(name in run["sizes"] for run in searched.runs):
            yield f"{name}: the sum of {' and '.join(map(str, terms))}"
    if steps := [case.name for case in cases if case.after]:
        states = [f"{each.name} by {each.fed_by}" for each in searched.guess.inputs if each.fed_by]
        more = f" and {len(states) - 1} more" if len(states) > 1 else ""
        yield f"{' and '.join(steps)}: fed what the case before gave, {states[0]}{more}"
    for number, each in enumerate(searched.guess.inputs):
        specs = [case.inputs.get(each.name, InputSpec()) for case in cases]
        if words := list(dict.fromkeys(filter(None, map(_values, specs)))):
            why = next(filter(None, (run["fillings"][number]["why"] for run in searched.runs)), "")
            shown = [*words[:MOST_SHOWN], *(["others"] if len(words) > MOST_SHOWN else [])]
            yield f"{each.name}: {', then '.join(shown)}{f' ({why})' if why else ''}"


def _unfed(searched: _Searched) -> Iterator[str]:
    if searched.unfed and not any(run["after"] is not None for run in searched.runs):
        yield f"no case is fed what another gave, since the model did not run on it: {searched.unfed}"


def _dimension_line(dimension: OpenDimension, searched: _Searched) -> str:
    sizes = [run["sizes"][dimension.name] for run in searched.runs]
    words = " and ".join(filter(None, ", ".join(map(str, dict.fromkeys(sizes))).rsplit(", ", 1)))
    why = dimension.why if len(dimension.sizes) == 1 or sizes[0] in dimension.sizes else "found by trying"
    only = "; others were refused" if len(set(sizes)) == 1 and len(dimension.sizes) > 1 else ""
    kind = "" if dimension.kind == "size" else f"{'image side' if dimension.kind == 'side' else dimension.kind}, "
    return f"{dimension.name} = {words} ({kind}{why}{only})"


def _values(spec: InputSpec) -> str:
    if spec.value is not None or spec.count_from is not None:
        return str(spec.value) if spec.count_from is None else f"{spec.count_from} and up"
    if spec.choices is not None:
        shown = ", ".join(map(_shown, spec.choices[:MOST_LISTED]))
        return shown + (f" and {len(spec.choices) - MOST_LISTED} more" if len(spec.choices) > MOST_LISTED else "")
    if spec.low is None and spec.high is None:
        return ""
    low = _number(spec.low or 0)
    return f"{low} to {_number(spec.high)}" if spec.high is not None else f"from {low}"


def _shown(choice: Scalar | tuple[Scalar, ...]) -> str:
    if isinstance(choice, tuple):
        return f"[{', '.join(map(_shown, choice[:MOST_SHOWN]))}{', ...' if len(choice) > MOST_SHOWN else ''}]"
    return toml_string(choice) if isinstance(choice, str) else _number(choice)


def _number(given: float) -> str:
    """Return a number with all digits of a whole one, which may be a key."""
    return str(int(given)) if given == given // 1 and abs(given) < LONGEST_WHOLE else f"{given:g}"


def _proves(output: OutputParity) -> bool:
    return output.verdict is not Verdict.NOT_JUDGED


def _with_itself(model: PreparedModel, reference: References) -> tuple[OutputParity, ...]:
    """Compare outputs with themselves, but for those that depend on chance: no case makes them comparable."""
    cases = (
        replace(case, outputs=tuple(output for output in case.outputs if not output.random)) for case in reference.cases
    )
    known = replace(reference, cases=tuple(cases))
    return compare(model.name, known, known, {}, same_library=True)


def _warnings(model: PreparedModel, compared: Iterable[OutputParity], coverage: Coverage) -> Iterator[str]:
    """Yield what the cases prove nothing about, in the words of parity."""
    whole = {info.name for info in model.facts.outputs}
    by_output: dict[str, dict[str, list[OutputParity]]] = {}
    for each in compared:
        name = each.output if each.output in whole else ELEMENT.sub("", each.output)
        by_output.setdefault(name, {}).setdefault(each.case, []).append(each)
    for output, by_case in by_output.items():
        nothing = {case: own[0].reason for case, own in by_case.items() if not any(map(_proves, own))}
        if len(nothing) == len(by_case):
            yield f"no case proves anything about output '{output}': {next(iter(nothing.values()))}"
        else:
            yield from (f"case '{case}' proves nothing about output '{output}': {why}" for case, why in nothing.items())
    bodies = coverage.idle
    if idle := [each for each in bodies if not any(each.startswith(f"{other}/") for other in bodies)]:
        nodes = coverage.nodes - coverage.executed
        shown = ", ".join(
            each if len(each) <= LONGEST_SHOWN else f"...{each[-LONGEST_SHOWN:]}" for each in idle[:MOST_SHOWN]
        )
        more = f" and {len(idle) - MOST_SHOWN} more" if len(idle) > MOST_SHOWN else ""
        yield f"no case enters {shown}{more}: {nodes:,} of {counted(coverage.nodes, 'node')}"
    yield from map(str, coverage.tables)


def case_toml(case: CaseSpec) -> str:
    """Return a case as an inline table of a buildspec, with what differs from the defaults."""
    parts = {
        "name": toml_string(case.name),
        "data": case.data and toml_string(case.data.as_posix()),
        "after": case.after and toml_string(case.after),
        "seed": case.seed and str(case.seed),
        "dimensions": case.dimensions and _table((name, str(size)) for name, size in case.dimensions.items()),
        "states": case.states and _table((name, toml_string(output)) for name, output in case.states.items()),
        "inputs": case.inputs and _table((name, _table(_fields(spec))) for name, spec in case.inputs.items()),
    }
    return _table(((key, str(value)) for key, value in parts.items() if value), plain=True)


def _fields(spec: InputSpec) -> Iterator[tuple[str, str]]:
    for key, value in asdict(spec).items():
        if key in {"low", "high"} and value is not None:
            yield key, f"{value:.15g}"  # a bound that is a whole number is written as one
        elif value is not None:
            yield key, _written(value)


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return toml_string(value) if isinstance(value, str) else json.dumps(value)


def _table(pairs: Iterable[tuple[str, str]], *, plain: bool = False) -> str:
    return "{ " + ", ".join(f"{name if plain else toml_key(name)} = {value}" for name, value in pairs) + " }"
