"""How near `ortrim cost` comes to the memory that a run of ONNX Runtime takes."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal

from records import table_of, write_results

from activation_memory.subjects import SUBJECTS, Subject, model_of
from ortrim.analysis.cost.graph import cost_of
from ortrim.base.console import Console
from ortrim.base.scripts import Python, ScriptCrash, run_script
from ortrim.errors import UsageError, VerifyError
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.pins.runtime import runtime_pins
from ortrim.report.table import Table

HEADINGS: Final = ("model", "form", "file", "peak by lifetime", "memory of a run", "measured", "off by")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One model in one form: what `invoke cost` says and what a process grew by, in bytes."""

    name: str
    form: str
    file_bytes: int
    lifetime_bytes: int
    predicted_bytes: int
    measured_bytes: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """All rows, with the version of ONNX Runtime that ran."""

    schema: Literal["ortrim-activation-memory/1"] = "ortrim-activation-memory/1"
    ort_version: str
    rows: tuple[Row, ...]


def table(rows: Iterable[Row]) -> Table:
    """Return the table; sizes in millions of bytes, and how far the prediction is from what was measured."""
    return table_of(
        HEADINGS,
        [
            (
                row.name,
                row.form,
                *map(_mb, (row.file_bytes, row.lifetime_bytes, row.predicted_bytes, row.measured_bytes)),
                f"{row.predicted_bytes / row.measured_bytes - 1:+.1%}",
            )
            for row in rows
        ],
        texts=2,
    )


def _mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f}"


LOCAL: Final = Path(__file__).parent
ORT_VERSION: Final = "1.21.0"
LEVELS: Final = {"basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"}
"""Forms of a model, by the level of ONNX Runtime's optimizations that made them."""
GIVES_BACK: Final = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_TOP_PAD_": "0"}
"""glibc's allocator maps each large block by itself, and gives it back as soon as it is freed."""


def measure(console: Console, *, names: tuple[str, ...], output: Path) -> Record:
    """Measure the subjects with these names (all without any), show the table, and write it and the record."""
    subjects = _chosen(names)
    pins = runtime_pins(ORT_VERSION)
    runtime = full_runtime(pins.version, pins.converter_requirements)
    rows: list[Row] = []
    with console.step("measure activation memory") as step, tempfile.TemporaryDirectory() as folder:
        for number, subject in enumerate(subjects):
            step.progress(number, len(subjects), subject.name)
            rows += _rows(subject, runtime, Path(folder))
    record = Record(ort_version=ORT_VERSION, rows=tuple(rows))
    console.render(table(rows).terminal())
    write_results(output, "activation-memory", record, table(rows).markdown() + "\n", console)
    return record


def _chosen(names: tuple[str, ...]) -> tuple[Subject, ...]:
    known = {subject.name: subject for subject in SUBJECTS}
    for name in names:
        if name not in known:
            hint = f"choose of {', '.join(known)}"
            raise UsageError("bad-option", f"{name!r} is not possible here", where="--models", hint=hint)
    return tuple(known[name] for name in names or known)


def _rows(subject: Subject, runtime: FullRuntime, folder: Path) -> Iterator[Row]:
    """Measure a model as it is, when its weights are in it, and as ONNX Runtime optimizes it at each level."""
    model = model_of(subject, runtime.version, folder)
    if subject.wheel:
        yield _row(subject, "as it is", model, runtime, folder)
    for form, level in LEVELS.items():
        made = folder / f"{form}.onnx"
        _asked(runtime, "optimize.py", {"model": str(model), "to": str(made), "level": level}, folder, subject)
        yield _row(subject, form, made, runtime, folder)


def _row(subject: Subject, form: str, model: Path, runtime: FullRuntime, folder: Path) -> Row:
    cost = cost_of(model, shapes=dict(subject.shapes), name=subject.name, where=str(model))
    request = {"model": str(model), "shapes": dict(subject.shapes)}
    answer = _asked(runtime, "one_run.py", request, folder, subject)
    return Row(
        name=subject.name,
        form=form,
        file_bytes=model.stat().st_size,
        lifetime_bytes=cost.peak.size_bytes,
        predicted_bytes=cost.memory.size_bytes,
        measured_bytes=round(median(answer["growth_bytes"])),
    )


def _asked(
    runtime: FullRuntime, script: str, request: dict[str, Any], folder: Path, subject: Subject
) -> dict[str, Any]:
    python = Python(words=runtime.words, environment={**runtime.environment, **GIVES_BACK})
    try:
        return run_script(python, LOCAL / script, request, folder=folder)
    except ScriptCrash as crash:
        what = f"the full runtime {crash.ending}"
        raise VerifyError("no-measurement", what, where=f"subject '{subject.name}'", why=crash.last_lines) from crash
