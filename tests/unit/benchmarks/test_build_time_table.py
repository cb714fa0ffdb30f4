"""The tables: medians, ratios, goals, comparisons."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from build_time.cases import CASES
from build_time.library import comparisons
from build_time.record import Machine, Measurement, Record
from build_time.table import (
    graph_points,
    median_processor,
    median_wall,
    points_table,
    ratio_to_upstream,
    times_table,
    verdict,
)

from ortrim.base.console import Console

Measure = Callable[..., Measurement]
CASE = {case.name: case for case in CASES}


def shown(renderable: object) -> str:
    """Return what a terminal shows."""
    text = StringIO()
    Console(stdout=text, environment={}).render(renderable)  # type: ignore[arg-type]
    return text.getvalue()


def recorded(machine: Machine, *measurements: Measurement) -> Record:
    """Return a record."""
    return Record(machine=machine, measurements=measurements)


def test_the_median_of_rounds_counts(measured: Measure) -> None:
    """One slow round does not."""
    assert median_wall(measured(wall_seconds=seconds) for seconds in (10, 90, 12)) == 12
    assert median_wall(()) is None
    assert median_processor(measured(cpu_seconds=seconds) for seconds in (10, 90, 12)) == 12
    assert median_processor(()) is None


def test_the_ratio_is_of_medians_of_the_newest(machine: Machine, measured: Measure) -> None:
    """What an older commit took does not matter."""
    upstream = [measured(case="upstream", round=number, wall_seconds=1000 + number, key="u") for number in (1, 2, 3)]
    old = measured(wall_seconds=900, started="2025-01-01T00:00:00", key="old")
    record = recorded(machine, *upstream, old, measured(wall_seconds=200.4))
    assert ratio_to_upstream(record, "demo", "ortrim") == pytest.approx(0.2)
    assert ratio_to_upstream(record, "demo", "one-more") is None
    assert ratio_to_upstream(record, "other", "ortrim") is None


@pytest.mark.parametrize(
    ("case", "wall", "expected"),
    [
        ("ortrim", 250.0, ("≤ 0.25", True)),
        ("ortrim", 250.1, ("≤ 0.25", False)),
        ("three-more", 49.0, ("≤ 0.05, ≤ 60 s", True)),
        ("three-more", 51.0, ("≤ 0.05, ≤ 60 s", False)),
        ("nothing-changed", 2.0, ("≤ 2 s", True)),
        ("switch-back", 11.0, ("≤ 10 s", False)),
        ("one-more", 11.0, ("", None)),
    ],
)
def test_a_goal_is_met_or_missed(
    machine: Machine, measured: Measure, case: str, wall: float, expected: tuple[str, bool | None]
) -> None:
    """Beside an upstream of a thousand seconds."""
    record = recorded(machine, measured(case="upstream", wall_seconds=1000), measured(case=case, wall_seconds=wall))
    assert verdict(record, "demo", CASE[case]) == expected


@pytest.mark.parametrize(("wall", "expected"), [(30.0, None), (61.0, False)])
def test_without_upstream_a_ratio_is_not_claimed(
    machine: Machine,
    measured: Measure,
    wall: float,
    expected: bool | None,  # noqa: FBT001 - a column
) -> None:
    """What is missed in seconds alone is missed."""
    record = recorded(machine, measured(case="three-more", wall_seconds=wall))
    assert verdict(record, "demo", CASE["three-more"])[1] is expected


def test_the_table_has_a_row_for_each_case_that_was_measured(machine: Machine, measured: Measure) -> None:
    """With all that the issue asks for."""
    record = recorded(
        machine,
        measured(case="upstream", wall_seconds=1200.0, units=None),
        measured(wall_seconds=240.0),
        measured(case="nothing-changed", wall_seconds=0.9, library=None, units=None, steps=0, busy_processors=2.0),
    )
    text = shown(times_table(record, "demo"))
    assert max(map(len, text.splitlines())) <= 120
    lines = [line.strip() for line in text.splitlines()]
    assert len(lines) == 5
    assert lines[2].startswith("upstream")
    for cell in ("4 min 00 s", "0.200", "4 min 50 s", "250", "220/800", "2.00 GB", "1,716,072", "abababab"):
        assert cell in lines[3]
    assert lines[3].endswith("≤ 0.25 met")
    assert "1*" in lines[4]
    assert lines[4].endswith("≤ 2 s met")


def test_a_table_of_nothing_has_no_rows(machine: Machine) -> None:
    """A caller may leave it out."""
    assert times_table(recorded(machine), "demo").row_count == 0


def test_the_points_of_the_graph_are_in_the_order_of_their_numbers(machine: Machine, measured: Measure) -> None:
    """Other cases and other specs are none."""
    record = recorded(
        machine,
        measured(case="operators-20", cpu_seconds=30),
        measured(case="operators-5", cpu_seconds=20),
        measured(case="operators-5", cpu_seconds=22, round=2),
        measured(case="operators-1", spec="other"),
        measured(),
    )
    assert graph_points(record, "demo") == ((5, 21), (20, 30))
    assert shown(points_table(graph_points(record, "demo"))).split()[-6:] == ["5", "21", "s", "20", "30", "s"]


def test_libraries_are_compared_with_those_of_the_other_recipes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each difference is a line."""
    monkeypatch.setattr(
        "build_time.library.differences", lambda one, _: ("file bytes: 9 and 8",) if "upstream" in str(one) else ()
    )
    for case in ("ortrim", "unpruned", "upstream"):
        (tmp_path / "demo" / case).mkdir(parents=True)
        (tmp_path / "demo" / case / "libonnxruntime.so").touch()
    assert list(comparisons(tmp_path / "demo")) == [
        "demo: the library of every file compiled, and ortrim's: identical",
        "demo: the library of upstream's recipe, and ortrim's: not the same",
        "  file bytes: 9 and 8",
    ]


def test_what_was_not_built_is_not_compared(tmp_path: Path) -> None:
    """Nor is anything claimed of it."""
    assert list(comparisons(tmp_path / "none")) == []
    (tmp_path / "ortrim").mkdir()
    (tmp_path / "ortrim" / "libonnxruntime.so").touch()
    assert list(comparisons(tmp_path)) == []
