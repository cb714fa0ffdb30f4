"""Models that are written for one kind of processor."""

from dataclasses import replace

import pytest

from ortrim.errors import ExitCode, PlanError
from sample_plans import MODELS, sample_plan

LAID_OUT = tuple(replace(model, level="all", layout="nchwc8") for model in MODELS)


def test_a_model_for_x64_is_planned_for_x64() -> None:
    """Every x64 processor runs it, so that no floor is asked for."""
    assert sample_plan("linux-x64", models=LAID_OUT).models == LAID_OUT


@pytest.mark.parametrize("target", ["linux-arm64", "linux-riscv64", "android-x86"])
def test_a_model_for_x64_is_refused_elsewhere(target: str) -> None:
    """No kernel of another processor knows the layout."""
    with pytest.raises(PlanError) as caught:
        sample_plan(target, models=LAID_OUT)
    error = caught.value
    assert (error.reference, error.where, error.exit_code) == ("layout-elsewhere", target, ExitCode.PLAN)


def test_signed_operators_run_everywhere() -> None:
    """They are only slower where the processor multiplies unsigned numbers faster."""
    signed = tuple(replace(model, layout="s8s8") for model in MODELS)
    assert sample_plan("linux-x64", models=signed).models == signed
