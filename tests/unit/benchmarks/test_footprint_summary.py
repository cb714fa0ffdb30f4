"""Medians and ratios, and how they are shown."""

from dataclasses import replace
from io import StringIO
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from footprint.contenders import WHEEL, WHEEL_ORT
from footprint.plot import NAME_HEIGHT, name_heights, pictures
from footprint.record import Round
from footprint.report import figure_text, markdown, tables
from footprint.summary import Summary, summaries

from footprint_samples import NAMES, TIMES, record, sample, turn
from ortrim.base.console import Console
from ortrim.report.figures import NONE
from ortrim.verify.measurements import Interval


def found(*factors: float) -> dict[str, Summary]:
    """Return the summaries by contender, of rounds in which the whole machine was slower by a factor each."""
    rounds = (turn(number, slower=factor) for number, factor in enumerate(factors, start=1))
    return {each.contender: each for each in summaries(record(*rounds))}


def test_the_wheel_comes_first_and_then_the_profiles() -> None:
    """In the order of the alphabet."""
    assert list(found(1.0)) == [WHEEL, WHEEL_ORT, "balanced", "upstream"]


def test_ratios_are_those_of_one_round() -> None:
    """A machine that is slow for a while slows both: the medians tell of it, the ratios do not."""
    ours = found(1.0, 1.0, 7.0, 9.0, 8.0)["balanced"]
    assert (ours.rounds, ours.load_ms) == (5, 45.0 * 7)
    for ratio, expected in ((ours.p50.of_level, 0.9), (ours.p50.of_default, 1.125), (ours.load.of_default, 1.125)):
        assert ratio is not None
        assert (ratio.low, ratio.median, ratio.high) == pytest.approx((expected,) * 3)


def test_every_case_is_reported_by_itself() -> None:
    """With its first run, which is not among the others."""
    one, two = found(1.0)["balanced"].cases
    assert (one.case, one.first_run_ms, one.p50_ms, one.p99_ms) == ("one", 13.5, 4.5, 9.0)
    assert (two.case, two.p50_ms) == ("two", 45.0)


def test_a_contender_that_a_round_lacks_has_no_ratio_in_it() -> None:
    """Of rounds of another version of this program."""
    whole = turn(1)
    without = replace(turn(2), samples=whole.samples[1:])
    ours = {each.contender: each for each in summaries(record(whole, without))}["balanced"]
    assert ours.rounds == 2
    assert ours.p50.of_default is not None
    assert ours.p50.of_default.high == pytest.approx(1.125)


def test_a_second_row_of_the_wheel_has_no_library_of_its_own() -> None:
    """It is the same file."""
    both = found(1.0)
    assert both[WHEEL].library is not None
    assert both[WHEEL_ORT].library is None


def test_nothing_measured_is_nothing_found() -> None:
    """And no picture."""
    assert summaries(record()) == ()
    assert pictures(()) == {}


def test_a_ratio_has_its_interval_beside_it() -> None:
    """One that could not be taken is a dash."""
    assert figure_text(Interval(low=0.9, median=0.95, high=1.0)) == "0.950 ±0.050"
    assert (figure_text(0.6667), figure_text(1_200_000), figure_text(None)) == ("0.667", "1,200,000", NONE)


def test_the_report_has_every_figure_and_the_goals() -> None:
    """Of the default profile."""
    text = markdown(found(1.0).values(), record())
    assert "| balanced | 1,200,000 | 0.667 | 400,000 | 2/2 | 4.50 MB |" in text
    assert "| net | library, bytes | 1,250,000 | 1,200,000 | met |" in text
    assert "| net | library of upstream's | 0.680 | 0.667 | met |" in text
    assert "| two | balanced | 135 ms | 45.0 ms | 90.0 ms | 0.900 ±0.000 | 1.125 ±0.000 |" in text
    assert "| net | p50 of the wheel's at the same level | 1.000 | 0.900 ±0.000 | met |" in text
    assert "| net | peak RSS of the wheel's | 0.330 | 1.125 ±0.000 | missed |" in text
    assert "A processor, 2 cores, Linux 6.1." in text


def goals(rounds: Round, **changes: Any) -> dict[str, tuple[str, str]]:
    """Return what is asked of a model and whether it is met, by the words of the table."""
    text = markdown(summaries(record(rounds, **changes)), record()).partition("## Goals")[2]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:5] == "| net"]
    return {row[1]: (row[2], row[4]) for row in cells}


AT_DEFAULT: Final = "p50 of the wheel's at its default level"


@pytest.mark.parametrize(("kind", "asked"), [
    ((False, False), {f"{AT_DEFAULT}, without convolutions": ("1.000", "missed")}),
    ((True, True), {f"{AT_DEFAULT}, convolutions with a layout named": ("1.050", "met")}),
    ((True, False), {}),
    (None, {}),
])  # fmt: skip
def test_what_is_asked_at_the_default_level_hangs_on_the_model(
    kind: tuple[bool, bool] | None, asked: dict[str, tuple[str, str]]
) -> None:
    """At 1.04, a transformer misses what a convolutional model meets; one without a layout is asked nothing."""
    samples = tuple(sample(name, times={**TIMES, "balanced": 1.04 * TIMES[WHEEL]}) for name in NAMES)
    found = goals(replace(turn(), samples=samples), kind=kind)
    assert {name: row for name, row in found.items() if name.startswith(AT_DEFAULT)} == asked


@pytest.mark.parametrize(("packed", "asked"), [
    (False, {"library, bytes": ("1,250,000", "met")}),
    (True, {"library with packed relocations, bytes": ("1,150,000", "missed")}),
])  # fmt: skip
def test_packed_relocations_have_a_goal_of_their_own(*, packed: bool, asked: dict[str, tuple[str, str]]) -> None:
    """It is lower: 1,200,000 bytes are enough for a library without."""
    found = goals(turn(), packed=packed)
    assert {name: row for name, row in found.items() if name.startswith("library") and "bytes" in name} == asked


def test_the_profile_for_size_has_its_goal() -> None:
    """And none of the default profile's."""
    samples = tuple(sample(name, times={**TIMES, "size": 5.0}) for name in (*NAMES, "size"))
    alone = {key: row for key, row in goals(replace(turn(), samples=samples)).items() if "size" in key}
    assert alone == {"library by profile size, bytes": ("950,000", "met")}


def test_rounds_beside_other_work_are_marked() -> None:
    """In the title of the model."""
    assert "## demo: net\\* (1 rounds)" in markdown(summaries(record(turn(busy=2.0))), record())
    assert "## demo: net (1 rounds)" in markdown(summaries(record(turn())), record())


def test_names_stay_text() -> None:
    """A model's name is somebody else's."""
    hostile = replace(turn(), model="a|b<script>\x1b[31m")
    text = markdown(summaries(record(hostile)), record())
    assert "<script>" not in text
    shown = StringIO()
    console = Console(stdout=shown, stderr=shown, environment={}, width=300)
    for table in tables(summaries(record(hostile))):
        console.render(table)
    assert "\x1b[31m" not in shown.getvalue()


def test_pictures_stand_alone() -> None:
    """Well-formed SVG with a name and colours of its own, a dot for each of our libraries and for its legend."""
    drawn = pictures(tuple(found(1.0).values()))
    assert sorted(drawn) == ["footprint-latency.svg", "footprint-memory.svg"]
    for picture in drawn.values():
        root = ET.fromstring(picture)  # noqa: S314 - our own
        circles = [each for each in root.iter() if each.tag.endswith("circle")]
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(circles) == 4
        assert "http" not in picture.replace("http://www.w3.org/2000/svg", "")


def test_names_do_not_cover_each_other() -> None:
    """Each stands beside its point, or below those above it that reach as far; one that is apart stays."""
    places = [(100.0, 50.0), (120.0, 52.0), (118.0, 51.0), (400.0, 51.0)]
    heights = name_heights(places, ["encoder"] * len(places))
    assert heights == [50.0, 50.0 + 2 * NAME_HEIGHT, 50.0 + NAME_HEIGHT, 51.0]
