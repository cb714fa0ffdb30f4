"""From runs to rows."""

from dataclasses import replace

import pytest

from engine_samples import GOOD, attempt, engine_run
from ortrim.bench.engine_processes import Attempt, CannotRun, rows_of
from ortrim.bench.engines import EngineRow


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
