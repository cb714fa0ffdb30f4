"""Runs of other inference engines: recorded answers of their script, and a comparison made of such."""

from pathlib import Path
from typing import Final

from bench_samples import HOST
from ortrim.bench.engine_processes import Attempt, CannotRun, EngineRun, SavedArray, rows_of
from ortrim.bench.engines import (
    ComparedCase,
    EngineComparison,
    EngineFacts,
    EngineLibrary,
    EngineParity,
    EngineRow,
)
from ortrim.parity.measurements import Verdict

RECORDED: Final = Path(__file__).parents[1] / "unit" / "engines" / "data"
"""Answers of engines to the demo's first case and, of tract, to another model's; versions: docs/guides/measure.md."""
GOOD: Final = EngineParity(verdict=Verdict.PASS, max_absolute=1e-6)
BAD: Final = EngineParity(verdict=Verdict.FAIL, max_absolute=0.4, reason="y: 3 of 4 elements out of tolerance")


def engine_run(*samples: float, peak: int = 28_000_000, version: str = "1.2.3") -> EngineRun:
    return EngineRun(
        status="ok",
        version=version,
        open_ms=20.0,
        load_ms=30.0,
        first_run_ms=5.0,
        samples_ms=samples,
        processor_ms=samples[0],
        loaded_bytes=peak - 1_000_000,
        peak_bytes=peak,
        outputs=(SavedArray(file="output_000.npy", element_type="float32", shape=(1,)),),
        libraries=(EngineLibrary(name="libengine.so", bytes=20_000_000), EngineLibrary(name="libmore.so", bytes=500)),
    )


def attempt(engine: str, *runs: EngineRun, parity: EngineParity = GOOD, convert_ms: float | None = None) -> Attempt:
    return Attempt(engine=engine, runs=runs, parity=parity, convert_ms=convert_ms)


def sample_rows() -> tuple[EngineRow, ...]:
    """Return the rows of four engines: the first, a faster one, one without parity, one that cannot run."""
    return rows_of(
        (
            attempt("onnxruntime", engine_run(1.0, 1.2, 9.0), engine_run(1.0, 1.1, 1.2)),
            attempt("trimmed", engine_run(0.5, 0.6, 0.7, peak=5_000_000), engine_run(0.5, 0.5, 0.6, peak=5_000_000)),
            attempt("mnn", engine_run(2.0, 2.4, 3.0), engine_run(2.2, 2.2, 2.4), parity=BAD, convert_ms=300.0),
            Attempt(engine="ncnn", failure=CannotRun(stage="convert", reason="pnnx ended with 255: | no [layer] <b>")),
        )
    )


def sample_comparison(rows: tuple[EngineRow, ...] | None = None, *, load_average: float = 0.1) -> EngineComparison:
    case = ComparedCase(
        model="net",
        model_sha256="0" * 64,
        case="one",
        shapes=(("x", (1, 3, 8)), ("rate", ())),
        rows=sample_rows() if rows is None else rows,
    )
    return EngineComparison(
        name="product",
        recorded_at="2026-11-21T12:00:00+00:00",
        ortrim_version="0.1.0",
        reference="ONNX Runtime 1.21.0, optimizations off",
        machine=HOST,
        load_average=load_average,
        threads=1,
        rounds=2,
        engines=(
            EngineFacts(name="onnxruntime", title="ONNX Runtime", version="1.21.0", installed_bytes=42_000_000),
            EngineFacts(name="trimmed", title="ONNX Runtime, trimmed", version="1.21.0", installed_bytes=1_000_000),
            EngineFacts(name="mnn", title="MNN", version="3.6.1", use="converted", installed_bytes=58_000_000),
            EngineFacts(name="ncnn", title="ncnn"),
        ),
        cases=(case,),
    )
