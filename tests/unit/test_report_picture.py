"""README's picture of a report shows what the demo is today: by its figures, which are kept beside it."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from ortrim.base.files import sha256_of
from ortrim.buildspec.buildspec import merged_budgets
from ortrim.buildspec.load import load_spec
from ortrim.platforms import target_problems
from report_picture import FIGURES, PICTURE

SHOWN: Final[dict[str, Any]] = json.loads(FIGURES.read_text())
SPEC: Final = load_spec(Path(__file__).parents[2] / "buildspecs" / "silero-vad.toml", target_problems)
TARGET: Final = next(target for target in SPEC.targets if target.id == SHOWN["target"])
BUDGETS: Final = merged_budgets(SPEC, TARGET)
AGAIN: Final = "take it again: ./bootstrap python tests/support/report_picture.py artifacts/silero-vad/PLAN/linux-x64"


def test_the_figures_are_the_pictures() -> None:
    """Both are made at once, of the demo."""
    assert (SHOWN["name"], SHOWN["picture_sha256"]) == ("silero-vad", sha256_of(PICTURE)), AGAIN


@pytest.mark.parametrize(
    ("measure", "budget", "shown"),
    [
        ("library", BUDGETS.library_ratio, "ratio"),
        ("library", BUDGETS.library_bytes, "ours"),
        ("peak RSS", BUDGETS.peak_rss_ratio, "ratio"),
        ("load", BUDGETS.load_ratio, "ratio"),
    ],
)
def test_what_the_picture_shows_is_near_to_the_budget(measure: str, budget: float | None, shown: str) -> None:
    """The budget is the demo's of today, and the figure lies between half of it and all."""
    found = [line for line in SHOWN["lines"] if (line["measure"], line["budget"]) == (measure, budget)]
    assert len(found) == 1, AGAIN
    assert budget
    assert budget / 2 <= found[0][shown] <= budget, AGAIN
