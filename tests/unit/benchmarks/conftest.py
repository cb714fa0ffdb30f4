"""The benchmarks as modules, and measurements and jobs to try them on."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from build_time.meter import Cost
from build_time.record import Library, Machine, Measurement

from ortrim.build.plan import BuildJob
from sample_plans import sample_plan

LIBRARY = Library(size_bytes=1716072, sha256="ab" * 32, exports=("OrtGetApiBase",), sections=((".text", 9),))
COST = Cost(
    wall_seconds=150,
    cpu_seconds=290,
    other_cpu_seconds=0.2,
    peak_process_bytes=10**9,
    peak_total_bytes=2 * 10**9,
    complete=True,
)
Measure = Callable[..., Measurement]


@pytest.fixture
def job() -> BuildJob:
    """Return a job with two operators."""
    return sample_plan().targets[0].job


@pytest.fixture
def machine() -> Machine:
    """Return a machine."""
    return Machine(cores=2, cpu="A processor", memory_bytes=24 * 10**9, system="Linux 6.1", load_average=0.1)


@pytest.fixture
def measured() -> Measure:
    """Return a function that makes a measurement of the case `ortrim`, its cost and all else to be changed."""

    def make(**changes: Any) -> Measurement:
        values: dict[str, Any] = {
            "spec": "demo", "case": "ortrim", "round": 1, "key": "k", "commit": "c", "started": "2026-01-01T00:00:00",
            "load_average": 1.1, "busy_processors": 0.1, "operator_types": 20, "steps": 250, "units": (220, 800),
            "library": LIBRARY,
        }  # fmt: skip
        cost = {name: changes.pop(name) for name in tuple(changes) if name in vars(COST)}
        return Measurement(**values | {"cost": replace(COST, **cost)} | changes)

    return make
