"""What a build is expected to come to, before anything is compiled."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from finished_builds import leave_build
from ortrim.buildspec.buildspec import Budgets
from ortrim.compiling.plan import CompilerCacheUse, JobResult, PlannedTarget
from ortrim.errors import ExitCode, PlanError
from ortrim.models.operators import OperatorId, render_config, required_operators
from ortrim.planning.planned import Planned, planned_for
from ortrim.planning.prediction import Prediction, predictions, remember, require_reachable
from pipeline_stages import Stages
from refusing import refused

DEMO = (
    "Add", "Concat", "Conv", "Equal", "Gather", "Gemm", "If", "Mul", "Pad", "Pow", "ReduceMean", "Relu", "Reshape",
    "Sigmoid", "Split", "Sqrt", "Squeeze", "Tanh", "Unsqueeze",
)  # fmt: skip
DEMO_BYTES = 797_704
XNNPACK_BYTES = 1_285_488


@pytest.fixture
def planned(stages: Stages) -> Planned:
    return planned_for(stages.request(), stages.console)


def with_operators(planned: Planned, names: Sequence[str]) -> PlannedTarget:
    operators = [OperatorId(domain="ai.onnx", opset=13, name=name) for name in names]
    target = planned.plan.targets[0]
    return replace(target, job=replace(target.job, operator_config=render_config(required_operators(operators, {}))))


def expected(target: PlannedTarget, stages: Stages) -> Prediction:
    (found,) = predictions([target], stages.request())
    return found


def build_here(target: PlannedTarget, folder: Path, size: int, *, seconds: float = 20.0, compiled: int = 30) -> None:
    library = folder / "library.so"
    library.write_bytes(bytes(size))
    result = JobResult(
        folder=folder, library=library, link_map=None, headers=folder, log=folder, seconds=seconds,
        compiler_cache=CompilerCacheUse(hits=200 - compiled, requests=200),
    )  # fmt: skip
    remember(target.job, result, pytest.fail)


def test_the_table_knows_the_demo_within_a_tenth(planned: Planned, stages: Stages) -> None:
    """Where nothing was built, the line says that the figures are ortrim's, and gives no more digits than are known."""
    found = expected(with_operators(planned, DEMO), stages)
    assert found.least < DEMO_BYTES < found.most
    assert found.most - found.least == pytest.approx(0.2 * (found.most + found.least) / 2, rel=0.01)
    assert "from ortrim's own table; compiling takes" in found.text


def test_the_table_knows_what_xnnpack_brings(planned: Planned, stages: Stages) -> None:
    """By the library of `tests/integration/test_xnnpack.py`."""
    target = with_operators(
        planned,
        ("Conv", "Relu", "Clip", "MaxPool", "ConvTranspose", "Resize", "AveragePool", "Flatten", "Gemm", "MatMul",
         "Softmax"),
    )  # fmt: skip
    found = expected(replace(target, job=replace(target.job, providers=("xnnpack",))), stages)
    assert found.least < XNNPACK_BYTES < found.most
    assert expected(target, stages).most < XNNPACK_BYTES


def test_a_build_here_of_almost_the_same_operators_says_it_better(
    planned: Planned, stages: Stages, tmp_path: Path
) -> None:
    """The nearest one counts, the others are told in their number; what is damaged does not count."""
    build_here(with_operators(planned, DEMO), tmp_path, 2_000_000)
    build_here(with_operators(planned, DEMO[:3]), tmp_path, 1_000_000)
    found = expected(with_operators(planned, DEMO[:-1]), stages)
    assert found.builds == 2
    assert 1_900_000 < found.least < found.most < 2_000_000 + 0.02 * 2_000_000
    assert "from 2 builds here" in found.text
    for kept in (tmp_path / "cache" / "predictions").glob("*/*.json"):
        kept.write_text("{")
    assert expected(with_operators(planned, DEMO), stages).builds == 0


def test_time_is_by_the_pace_of_builds_here(planned: Planned, stages: Stages, tmp_path: Path) -> None:
    """What was compiled before is in the compiler cache; only what is new takes time."""
    build_here(with_operators(planned, DEMO), tmp_path, 1_000_000, seconds=90.0, compiled=165)
    same = expected(with_operators(planned, DEMO), stages)
    more = expected(with_operators(planned, (*DEMO, "LSTM", "Erf")), stages)
    assert same.seconds == pytest.approx((7.5, 30.0))
    assert same.seconds
    assert more.seconds
    assert more.seconds > same.seconds


def test_what_is_built_is_known(planned: Planned, stages: Stages) -> None:
    """And nothing of it is refused any more: the report judges it."""
    target = planned.plan.targets[0]
    leave_build(target)
    found = expected(target, stages)
    assert found.text == "linux-x64: a library of 0.00 MB, built before"
    require_reachable(planned, [(replace(target, budgets=Budgets(library_bytes=1)), found)])


def test_a_budget_far_below_what_is_expected_is_refused(planned: Planned, stages: Stages) -> None:
    """A budget that might be met is left to the report."""
    target = with_operators(planned, DEMO)
    found = expected(target, stages)
    require_reachable(planned, [(replace(target, budgets=Budgets(library_bytes=found.least)), found)])
    error = refused(
        PlanError, require_reachable, planned, [(replace(target, budgets=Budgets(library_bytes=100_000)), found)]
    )
    assert (error.code, error.exit_code) == ("budget-unreachable", ExitCode.PLAN)
    assert error.what == "the budget library_bytes = 100_000 cannot be met"
