"""Reference outputs of the full runtime: the original model's, with every optimization off, and the converted model's.

The original's show what conversion and library change together. The converted model's, from the same graph with the
same kernels, show what the library alone changes, which is next to nothing.
"""

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from pydantic import ValidationError

from ortrim.base.cache import cache_folder, cached_folder
from ortrim.base.command import Completed, is_shortage, last_lines, out_of_memory, run
from ortrim.base.files import code_digest, disk_full, says_full, shipped_folder, storage_errors
from ortrim.base.json import from_json, to_json
from ortrim.base.scripts import ending
from ortrim.buildspec.buildspec import IN_PLACE, ModelSpec, SessionSettings, as_the_official
from ortrim.errors import Diagnostic, ModelError, ToolError, VerifyError
from ortrim.models import refusals
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.kernels import kernel_diagnostic, session_refusal
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.parity.coverage import coverage_of, marked_copy
from ortrim.parity.evidence import entries
from ortrim.parity.inputs import Case, advice, crash_advice, load_array, make_cases
from ortrim.parity.measurements import Coverage, UnreadTable
from ortrim.parity.runner import SHORT_OF_MEMORY, SavedOutput

if TYPE_CHECKING:
    from ortrim.parity.tables import Tables

SCRIPT: Final = shipped_folder("scripts") / "reference.py"
MARKING: Final = tuple(
    Path(__file__).with_name(f"{name}.py") for name in ("coverage", "evidence", "random_numbers", "reference", "tables")
)
INDEX: Final = "reference.json"
MARKED: Final = "marked"
"""Where the copy with markers lies while the script runs."""
LOOKED_UP: Final = "looked-up"
"""Where the model lies meanwhile that tells which entries of tables are looked up."""
NUMBERED: Final = re.compile(r"output_(\d+)")
"""How the file of an output begins, or of a part of it: with its number."""
TIMEOUT_SECONDS: Final = 1800.0


@dataclass(frozen=True, kw_only=True)
class CaseOutputs:
    """The outputs of one case, in the order of the model's."""

    name: str
    outputs: tuple[SavedOutput, ...]


@dataclass(frozen=True, kw_only=True)
class SavedOutputs:
    """The outputs of one model: those of a case lie in `folder/<case>`.

    The model may compute with `quantized` numbers, have convolutions, or `float32_weights`; `probabilities` are the
    outputs that are 0 or 1 only where they are saturated.
    """

    folder: Path
    cases: tuple[CaseOutputs, ...]
    quantized: bool = False
    convolves: bool = False
    float32_weights: bool = False
    probabilities: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class References(SavedOutputs):
    """The full runtime's outputs of one model, and how much of its graph the cases execute."""

    coverage: Coverage


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What the script prints: `entered` are the numbers of the bodies that some case entered."""

    status: Literal["ok"]
    runtime_version: str
    cases: tuple[CaseOutputs, ...]
    entered: tuple[int, ...]


T = TypeVar("T", bound=SavedOutputs)


def reference_outputs(model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime, folder: Path) -> References:
    """Return the full runtime's outputs, from a folder below `folder` that is made when it is not there yet."""
    destination = folder / f"{model.name}-{_digest(model.facts.sha256, cases, runtime)[:16]}"

    def fill(temporary: Path) -> None:
        marked = marked_copy(model.path, temporary / MARKED)
        words = ("--marked", str(marked.path)) if marked.path else ()
        answer = _run((str(model.path), *words), model, cases, runtime, temporary)
        with storage_errors(temporary):
            shutil.rmtree(temporary / MARKED, ignore_errors=True)
        tables = unread_tables(*looked_up(model, cases, runtime, temporary))
        outputs = References(
            folder=destination,
            cases=_with_draws(answer.cases, model),
            quantized=marked.quantized,
            convolves=marked.convolves,
            float32_weights=marked.float32_weights,
            probabilities=marked.probabilities,
            coverage=replace(coverage_of(marked, answer.entered), tables=tables),
        )
        _write_index(outputs, temporary)

    cached_folder(destination, fill)
    return _read_index(References, destination, model)


def looked_up(
    model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime, folder: Path
) -> tuple["Tables", tuple[tuple[set[int], ...], ...]]:
    """Return a model's tables and, for each case, the entries that are looked up in each of them.

    No case is among them if the runtime does not run what tells. `folder` gets nothing that stays.
    """
    from ortrim.models.onnx_files import read_onnx  # noqa: PLC0415 - heavy, as what makes references anew is
    from ortrim.models.shapes import inlined  # noqa: PLC0415 - as above
    from ortrim.parity.tables import tables_of  # noqa: PLC0415 - as above

    place = folder / LOOKED_UP
    tables = tables_of(inlined(read_onnx(model.path, model.name), model.name), model.path, place)
    found: tuple[tuple[set[int], ...], ...] = ()
    if tables.path:
        with suppress(ModelError, VerifyError):
            answer = _run((str(tables.path),), model, cases, runtime, place)
            found = tuple(
                tuple(
                    entries(load_array(place / case.name / output.file), table.dimensions, table.axis) - {-1}
                    for table, output in zip(tables.read, case.outputs, strict=True)
                    if output.file
                )
                for case in answer.cases
            )
    with storage_errors(folder):
        shutil.rmtree(place, ignore_errors=True)
    return tables, found


def unread_tables(tables: "Tables", looked: tuple[tuple[set[int], ...], ...]) -> tuple[UnreadTable, ...]:
    """Return the tables of which cases that look up these entries leave some."""
    read = zip(tables.read, (set[int]().union(*found) for found in zip(*looked, strict=True)), strict=False)
    left = [(table, table.entries - len(found)) for table, found in read]
    unknown = [(table, None) for table in (*(() if looked else tables.read), *tables.hidden)]
    return tuple(
        UnreadTable(place=table.place, entries=table.entries, unread=unread)
        for table, unread in (*left, *unknown)
        if unread != 0
    )


def cases_made(
    model: PreparedModel, spec: ModelSpec, base: Path, runtime: Callable[[], FullRuntime]
) -> tuple[Case, ...]:
    """Return a model's cases, made in the cache; the full runtime is needed where one comes after another."""

    def run(case: Case) -> SavedOutputs:
        return reference_outputs(model, (case,), runtime(), cache_folder("references"))

    return make_cases(model, spec, base, cache_folder("cases"), run)


def shipped_outputs(
    model: PreparedModel,
    converted: OrtModel,
    session: SessionSettings,
    cases: tuple[Case, ...],
    *,
    runtime: FullRuntime,
    folder: Path,
    runs_here: bool,
) -> SavedOutputs:
    """Return the full runtime's outputs of the converted model, with the session's settings that ship with it.

    The session is created as applications do it. A model in NCHWc layout `runs_here` only if this processor has its
    block size. Otherwise the outputs are those of the original, which the full runtime optimizes for this processor.
    """
    path, settings = (converted.path, session) if runs_here else (model.path, as_the_official(session))
    what = f"{model.facts.sha256} {converted.sha256} {to_json(session)} {runs_here}"
    destination = folder / f"{model.name}-shipped-{_digest(what, cases, runtime)[:16]}"

    def fill(temporary: Path) -> None:
        if why := session_refusal(converted.path, session, runtime=runtime, folder=temporary):
            forced = IN_PLACE in session.configuration and not converted.reads_in_place
            raise _as_shipped(model, why, forced=forced)
        try:
            answer = _run((str(path), "--session", to_json(settings)), model, cases, runtime, temporary)
        except (ModelError, VerifyError) as error:
            if isinstance(error, VerifyError) and error.code != "reference-failed":
                raise
            raise _as_shipped(model, error.why, forced=False) from error
        _write_index(SavedOutputs(folder=destination, cases=_with_draws(answer.cases, model)), temporary)

    cached_folder(destination, fill)
    return _read_index(SavedOutputs, destination, model)


def _as_shipped(model: PreparedModel, why: str, *, forced: bool) -> VerifyError:
    # The model ran as it was given: conversion, or the settings, are what it does not stand.
    what = "the converted model does not run with the session that its package has"
    hint = "leave in_place = true out of its session" if forced else "try level = 'basic', or other session settings"
    return VerifyError("shipped-session-fails", what, where=refusals.where_of(model), why=why, hint=hint)


def _digest(what: str, cases: tuple[Case, ...], runtime: FullRuntime) -> str:
    parts = [code_digest([SCRIPT, *MARKING]), runtime.version, what]
    text = json.dumps([*parts, *([case.name, case.digest] for case in cases)])
    return hashlib.sha256(text.encode()).hexdigest()


def _run(
    arguments: tuple[str, ...], model: PreparedModel, cases: tuple[Case, ...], runtime: FullRuntime, temporary: Path
) -> _Answer:
    words = [*arguments, *(word for case in cases for word in ("--case", case.name, str(case.folder)))]
    command = [*runtime.words, str(SCRIPT), "--outputs", str(temporary), "--model", *words]
    try:
        completed = run(command, environment=runtime.environment, timeout_seconds=TIMEOUT_SECONDS)
    except ToolError as error:
        reference = "reference-timeout" if error.code == "tool-timeout" else "reference-failed"
        what = f"the full runtime {error.what}"
        raise VerifyError(reference, what, where=refusals.where_of(model), why=error.why) from error
    if completed.returncode != 0:
        said = completed.stdout + completed.stderr
        if says_full(temporary, said):
            places = (temporary.parent, Path(tempfile.gettempdir()))
            why = (completed.stderr or completed.stdout).strip().rpartition("\n")[2][:300]
            raise disk_full("the full runtime ran out of disk space for its outputs", *places, why=why)
        if is_shortage(said):
            raise out_of_memory(f"model '{model.name}'", said.strip().rpartition("\n")[2][:300])
        raise _refusal(model, completed, runtime, temporary)
    try:
        return from_json(_Answer, completed.stdout)
    except ValidationError as error:
        raise _not_described(error, model, "") from error


def _with_draws(cases: tuple[CaseOutputs, ...], model: PreparedModel) -> tuple[CaseOutputs, ...]:
    from ortrim.models.onnx_files import read_onnx  # noqa: PLC0415 - heavy, as what makes references anew is
    from ortrim.parity.random_numbers import drawn_outputs  # noqa: PLC0415 - as above

    draws = drawn_outputs(read_onnx(model.path, model.name))

    def marked(output: SavedOutput) -> SavedOutput:
        found = NUMBERED.match(output.file or "")
        return replace(output, draws=draws[int(found[1])]) if found else output

    return tuple(replace(case, outputs=tuple(map(marked, case.outputs))) for case in cases)


def _refusal(model: PreparedModel, completed: Completed, runtime: FullRuntime, folder: Path) -> Diagnostic:
    """Return the diagnostic for the full runtime's end, or its refusal of the model, or of a case when it names one."""
    what, where = "the full runtime does not run the original model", refusals.where_of(model)
    try:
        document: Any = json.loads(completed.stdout)
        why, case = str(document["message"]), document.get("case")
    except (ValueError, KeyError, TypeError, AttributeError):
        ended = ending(completed.returncode)
        why, case = f"it {ended}\n{last_lines(completed.stderr)}".strip(), ""
        if completed.returncode < 0:
            hint = crash_advice(model.facts, ended)
            return refusals.crash(ended, where, runtime.version, why=last_lines(completed.stderr), hint=hint)
    if known := refusals.known_refusal(why, model):
        return known
    if SHORT_OF_MEMORY.search(why):
        what = "there is not enough memory for the full runtime"
        hint = "use a machine with more memory, or smaller cases"
        return VerifyError("out-of-memory", what, where=where, why=why, hint=hint)
    if case is None:
        missing = kernel_diagnostic(why, original=model, runtime=runtime, folder=folder)
        return missing or refusals.refusal(why, model, runtime.version)
    where = f"{where}, case '{case}'" if case else where
    return VerifyError("reference-failed", what, where=where, why=why, hint=advice(model.facts, why))


def _write_index(outputs: SavedOutputs, temporary: Path) -> None:
    with storage_errors(temporary):
        (temporary / INDEX).write_text(to_json(outputs), encoding="utf-8")


def _read_index(kind: type[T], folder: Path, model: PreparedModel) -> T:
    try:
        return replace(from_json(kind, (folder / INDEX).read_bytes()), folder=folder)
    except (OSError, ValidationError) as error:
        raise _not_described(error, model, f"remove {folder}, then run the same command again") from error


def _not_described(error: Exception, model: PreparedModel, hint: str) -> VerifyError:
    why = "\n".join(str(error).splitlines()[:3])
    what = "the full runtime's outputs are not described as they should be"
    return VerifyError("reference-failed", what, where=refusals.where_of(model), why=why, hint=hint)
