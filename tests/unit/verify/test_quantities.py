from collections.abc import Callable

import pytest

from ortrim.parity.runner import RunnerOutput
from ortrim.verify.judge import load_time, missed_deadlines
from ortrim.verify.measure import Round, Rounds

MakeOutput = Callable[..., RunnerOutput]


def test_ratios_are_taken_round_by_round(make_output: MakeOutput) -> None:
    """A machine that gets slower during the run slows both: the ratio has no spread."""
    turns = [Round(ours=make_output(load=1.1 * ms), baseline=make_output(load=ms)) for ms in (1.0, 2.0, 4.0, 8.0)]
    found = load_time(Rounds(model="m", rounds=tuple(turns)))
    assert found.ratio is not None
    assert found.ratio.median == pytest.approx(1.1)
    assert found.ratio.spread == pytest.approx(0)
    assert (found.ours.high, found.baseline) == (8.8, 3.0)


@pytest.mark.parametrize(
    ("count", "under", "over"), [(3, 0, 0), (9, 0, 1), (12, 2, 2), (18, 3, 3), (36, 9, 9), (40, 13, 13), (144, 56, 56)]
)
def test_an_interval_leaves_out_what_its_look_can_afford(
    make_output: MakeOutput, count: int, under: int, over: int
) -> None:
    """Failing takes more than passing at first; the last look, at any other number, has what the others left."""
    turns = [Round(ours=make_output(load=float(ms)), baseline=make_output(load=1.0)) for ms in range(1, count + 1)]
    found = load_time(Rounds(model="m", rounds=tuple(turns))).ours
    assert (found.low - 1, count - found.high) == (under, over)


def test_input_and_output_count_for_the_deadline(make_output: MakeOutput) -> None:
    """An application waits for the whole run, of which the samples here have 2 µs outside of the inference."""
    rounds = Rounds(model="m", rounds=(Round(ours=make_output(only=1.0), baseline=make_output(only=0.5)),))
    missed = {limit: missed_deadlines(rounds, limit)[0].ours.median for limit in (0.999, 1.0, 1.001, 1.003)}
    assert missed == {0.999: 3, 1.0: 3, 1.001: 3, 1.003: 0}


def test_missed_deadlines_have_no_ratio(make_output: MakeOutput) -> None:
    """The baseline's number is beside ours; a number divided by one that is mostly 0 says nothing."""
    rounds = Rounds(model="m", rounds=(Round(ours=make_output(only=3.0), baseline=make_output(only=2.0)),))
    (found,) = missed_deadlines(rounds, 1.0)
    assert (found.ours.median, found.baseline, found.ratio, found.unit) == (3, 3, None, "runs")
