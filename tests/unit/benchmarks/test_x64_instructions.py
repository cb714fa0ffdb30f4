"""What the plugin writes, read; and the table."""

import pytest
from x64_instructions import Row, by_case, differences, line

from ortrim.verify.devices.device import CaseRun


def case_run(name: str, runs: int) -> CaseRun:
    """Return a case as the runner tells of it."""
    times = (1.0,) * runs
    return CaseRun(
        name=name, first_run_ms=1.0, outputs=(), runs=runs, input_ms=times, inference_ms=times, output_ms=times
    )


def test_what_lies_between_two_questions_is_a_run() -> None:
    """Other lines of qemu's are none of the plugin's."""
    lines = ["instructions 100", "qemu: a warning", "instructions 130", "instructions 200", "instructions 225"]
    assert list(differences(lines)) == [30, 25]


def test_a_question_too_many_is_no_run() -> None:
    """The runner was stopped in between."""
    with pytest.raises(ValueError, match="shorter"):
        list(differences(["instructions 100"]))


def test_a_cases_figure_is_the_median_of_its_later_runs() -> None:
    """Neither of its first run nor of the one to warm up; cases may have different numbers of runs."""
    taken = [900, 800, 10, 30, 20, 700, 600, 5]
    assert by_case(iter(taken), [case_run("a", 3), case_run("b", 1)]) == {"a": 20, "b": 5}


def test_a_line_has_both_figures_and_their_ratio() -> None:
    """With separators, as people read them."""
    assert line(Row(model="m", case="c", ours=1_050, wheel=1_000)) == "| m | c | 1,050 | 1,000 | 1.050 |\n"
