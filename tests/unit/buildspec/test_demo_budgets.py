"""The budgets of the demo: every target has one of its library's size that can be judged."""

from pathlib import Path

import pytest

from ortrim.buildspec.buildspec import TargetSpec, merged_budgets
from ortrim.buildspec.load import load_spec
from ortrim.buildspec.targets import TARGETS, OperatingSystem
from ortrim.platforms import target_problems

SPEC = load_spec(Path(__file__).parents[3] / "buildspecs" / "silero-vad.toml", target_problems)
ANDROID = [target for target in SPEC.targets if TARGETS[target.id].system is OperatingSystem.ANDROID]


@pytest.mark.parametrize("target", ANDROID, ids=lambda target: target.id)
def test_without_a_baseline_the_budget_is_in_bytes(target: TargetSpec) -> None:
    """There is no official library for Android to divide by."""
    assert merged_budgets(SPEC, target).library_bytes


def test_the_demo_is_for_all_abis() -> None:
    assert len(ANDROID) == 4
