"""Benches, made up: plans, samples and what a runner prints."""

from dataclasses import replace
from typing import Any, Final

from ortrim.bench.points import (
    DEFAULT,
    BenchCase,
    BenchLibrary,
    BenchModel,
    BenchPlan,
    BenchPoint,
    BenchReport,
    Sample,
    sweep_points,
    turns,
)
from ortrim.bench.scores import report_of
from ortrim.buildspec.buildspec import DEFAULTS, SessionSpec
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import CaseRun, MemoryUse, RunnerOutput, RunRequest

SESSION: Final = replace(DEFAULTS, in_place=True)
BASE: Final = BenchPoint(name=DEFAULT, session=SESSION)
FULL_BASE: Final = BenchPoint(name=DEFAULT, session=replace(SESSION, in_place=False, load="file"), level="all")
HOST: Final = HostFacts(system="Linux", machine="x86_64", cpu="A processor", cores=4, memory_bytes=1 << 33)
LIBRARY: Final = BenchLibrary(kind="built", name="the build of demo", sha256="1" * 64, ort_version="1.21.0", full=False)
CASES: Final = (
    BenchCase(name="one", digest="c1", runs=4, warmup=1),
    BenchCase(name="two", digest="c2", runs=4, warmup=1),
)


def sample_model(*words: str, cases: tuple[BenchCase, ...] = CASES) -> BenchModel:
    points = sweep_points(BASE, words, cores=4, full=False)
    return BenchModel(name="net", sha256="2" * 64, cases=cases, points=points)


def sample_plan(*words: str, **changes: Any) -> BenchPlan:
    """Return a plan of three rounds with one model of two cases."""
    plan = BenchPlan(
        name="demo", target="linux-x64", recorded_at="2026-11-21T12:00:00+00:00", ortrim_version="0.1.0",
        training_run="run-7", library=LIBRARY, machine=HOST, deadline_ms=10.0, rounds=3, models=(sample_model(*words),),
    )  # fmt: skip
    return replace(plan, **changes)


def sample(number: int = 0, point: str = DEFAULT, case: str = "one", factor: float = 1.0, **changes: Any) -> Sample:
    """Return what a process took; times are `factor` ms, with a straggler of twelve times that."""
    loaded = Sample(
        round=number, model="net", point=point, case=case, load_ms=8.0, peak_rss_bytes=10_000_000, cpu_seconds=0.02
    )
    if not case:
        return replace(loaded, **changes)
    times = (factor, factor, 1.5 * factor, 12 * factor)
    run = replace(
        loaded, first_run_ms=5.0, inferences=6, input_ms=(0.0,) * 4, output_ms=(0.0,) * 4, inference_ms=times,
        cpu_seconds=0.02 + 6e-3 * factor,
    )  # fmt: skip
    return replace(run, **changes)


def samples_of(plan: BenchPlan, factors: dict[str, float]) -> tuple[Sample, ...]:
    return tuple(
        sample(number, point.name, case, factors.get(point.name, 1.0))
        for number in range(plan.rounds)
        for model in plan.models
        for point, case in turns(model, number)
    )


def sample_report(*words: str, **factors: float) -> BenchReport:
    plan = sample_plan("threads=1,2", "arena=true,false", *words)
    named = {name.replace("__", " ").replace("_is_", "="): factor for name, factor in factors.items()}
    return report_of(plan, samples_of(plan, named), "latency", "artifacts/bench/demo.jsonl")


def runner_output(request: RunRequest, milliseconds: float = 1.0) -> RunnerOutput:
    runs = request.repetition.runs
    cases = tuple(
        CaseRun(
            name=case.name, first_run_ms=3.0, outputs=(), runs=runs, input_ms=(0.1,) * runs,
            inference_ms=(milliseconds,) * runs, output_ms=(0.1,) * runs,
        )
        for case in request.cases
    )  # fmt: skip
    memory = MemoryUse(
        opened_rss_bytes=1,
        loaded_rss_bytes=2,
        peak_rss_bytes=5_000_000,
        inference_peak_rss_bytes=4,
        peak_source="VmHWM",
    )
    return RunnerOutput(
        schema="ortrim-runner/1", status="ok", runtime_version="1.21.0", open_ms=1.0, load_ms=2.0, cases=cases,
        memory=memory,
    )  # fmt: skip


def session(**changes: Any) -> SessionSpec:
    return replace(SESSION, **changes)
