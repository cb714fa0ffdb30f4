"""From runs to rows."""

import re
from dataclasses import replace

import pytest

from engine_samples import GOOD, attempt, engine_run
from ortrim.bench.engine_processes import SCRIPT, Attempt, CannotRun, rows_of
from ortrim.bench.engines import ENGINES, ONNXRUNTIME, USUAL, EngineRow, engine_requirements, engines_named
from ortrim.errors import UsageError
from refusing import refused


def test_a_row_sums_up_all_rounds() -> None:
    """Latency over all runs of all rounds, the rest as medians of the rounds; libraries are added up."""
    runs = (engine_run(1.0, 1.2, 9.0), engine_run(2.0, 2.0, 2.0, peak=30_000_000), engine_run(1.0, 1.1, 1.2))
    (row,) = rows_of([attempt("onnxruntime", *runs, convert_ms=7.0)])
    assert row.times is not None
    assert (row.times.rounds, row.times.latency_ms.count, row.times.latency_ms.maximum) == (3, 9, 9.0)
    assert (row.times.load_ms, row.times.processor_ms, row.times.peak_bytes) == (30.0, 1.0, 28_000_000)
    assert (row.times.library_bytes, row.times.convert_ms, row.times.parity) == (20_000_500, 7.0, GOOD)
    assert (row.times.ratio, row.times.spread) == (1.0, 0.0)


def test_ratios_are_taken_round_by_round() -> None:
    first = attempt("onnxruntime", engine_run(1.0), engine_run(10.0), engine_run(1.0))
    second = attempt("mnn", engine_run(2.0), engine_run(20.0), engine_run(2.5))
    times = rows_of([first, second])[1].times
    assert times is not None
    assert times.ratio == 2.0
    assert times.spread == pytest.approx(0.125)


def test_one_that_failed_has_its_reason_and_no_times() -> None:
    """Even when it ran in earlier rounds; without the first engine there is no ratio."""
    failed = replace(attempt("onnxruntime", engine_run(1.0)), failure=CannotRun(stage="run", reason="it crashed"))
    rows = rows_of([failed, attempt("mnn", engine_run(1.0))])
    assert rows[0] == EngineRow(engine="onnxruntime", stage="run", reason="it crashed")
    assert rows[1].times is not None
    assert (rows[1].times.ratio, rows[1].times.spread) == (None, None)


def test_nothing_run_is_no_row_of_figures() -> None:
    """No round, or no parity, is a reason too; no engines make no rows."""
    assert rows_of([Attempt(engine="mnn")])[0].reason == "it was not run"
    assert rows_of([]) == ()


def test_the_full_runtime_comes_first() -> None:
    assert [engine.name for engine in engines_named(("mnn", "tract", "mnn"))] == [ONNXRUNTIME, "mnn", "tract"]


def test_the_usual_ones_are_compared_unasked() -> None:
    assert tuple(engine.name for engine in engines_named(())) == USUAL
    assert "litert" not in USUAL
    assert ENGINES["litert"].converter


@pytest.mark.parametrize(
    ("name", "hint"), [("opnvino", "did you mean 'openvino'?"), ("", "choose from"), ("x" * 999, "choose")]
)
def test_an_unknown_engine_is_refused(name: str, hint: str) -> None:
    error = refused(UsageError, engines_named, (name,))
    assert error.code == "bad-option"
    assert hint in error.hint


def test_every_engine_has_its_script() -> None:
    scripts = {path.stem.removeprefix("engine_") for path in SCRIPT.parent.glob("engine_*.py")}
    assert scripts == set(ENGINES)


NAMES = sorted({name for engine in ENGINES.values() for name in (engine.package, engine.converter) if name})


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_pinned_with_hashes(name: str) -> None:
    entries = re.split(r"(?m)^(?=[^ #\n])", engine_requirements(name))[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+( ; [^\\]+)? \\\n +--hash=sha256:[0-9a-f]{64}", entry), entry
    assert not re.findall(r"https?://|file:|--index|--find-links", engine_requirements(name))


def test_heavy_requirements_of_the_converter_are_left_out() -> None:
    """What pnnx declares and its program does not need is half a gigabyte."""
    assert "torch" not in engine_requirements("ncnn")
