import dataclasses
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.devices.device import ProgramDevice
from ortrim.errors import VerifyError
from ortrim.parity import measurements
from ortrim.parity.runner import RunnerOutput, RunRequest
from ortrim.verify.judge import load_time, missed_deadlines
from ortrim.verify.measure import DeviceRuns, Measurement, Measuring, OnProgress, Round, Rounds, carry_out, results

MakeOutput = Callable[..., RunnerOutput]


class RecordingDevice(ProgramDevice):
    """A device that answers with prepared reports and remembers what it was asked."""

    name = "recorded"

    def __init__(self, make: MakeOutput, fail_at: int = -1) -> None:
        self.make = make
        self.fail_at = fail_at
        self.requests: list[RunRequest] = []

    def facts(self) -> measurements.HostFacts:
        raise NotImplementedError

    def run(self, request: RunRequest) -> RunnerOutput:
        self.requests.append(request)
        if len(self.requests) == self.fail_at:
            raise VerifyError("runner-crashed", "the runner was ended by SIGSEGV")
        return self.make(load=float(len(self.requests)), only=(1.0, 2.0, 3.0))


OURS = RunRequest(runner=Path("/runner"), library=Path("/ours.so"), model=Path("/m.ort"), cases=(), name="m")
THEIRS = dataclasses.replace(OURS, library=Path("/theirs.so"), model=Path("/m.onnx"))
MEASUREMENT = Measurement(ours=OURS, baseline=THEIRS, rounds=4)


def measure(device: RecordingDevice, measurement: Measurement, tell: OnProgress = lambda *_: None) -> Rounds:
    measuring = Measuring(measurement)
    carry_out(device, measuring.runs(), DeviceRuns(measurement.rounds, tell))
    assert measuring.is_whole
    return measuring.rounds


def test_rounds_alternate_who_goes_first(make_output: MakeOutput) -> None:
    device = RecordingDevice(make_output)
    measure(device, MEASUREMENT)
    order = [request.library.name for request in device.requests]
    assert order == ["ours.so", "theirs.so", "theirs.so", "ours.so"] * 2


def test_results_are_of_the_whole_rounds(make_output: MakeOutput) -> None:
    """A shorter round, made for one verdict, changes no figure of the report; waiting is no part of loading."""
    whole = Round(ours=replace(make_output(load=9.0), load_waited_ms=2.0), baseline=None)
    short = replace(whole, ours=make_output(load=99.0, peak=99), only=frozenset({"load"}))
    (found,) = results(Rounds(model="m", rounds=(whole,), shorter=(short,)), None)
    assert (found.load_ms.count, found.load_ms.p50, found.peak_rss_bytes.maximum) == (1, 7.0, 10_000_000)


def test_without_a_baseline_ours_runs_alone(make_output: MakeOutput) -> None:
    device = RecordingDevice(make_output)
    rounds = measure(device, dataclasses.replace(MEASUREMENT, baseline=None))
    assert [request.library.name for request in device.requests] == ["ours.so"] * 4
    assert [turn.baseline for turn in rounds.rounds] == [None] * 4
    assert [result.library for result in results(rounds, None)] == ["ours"]


def test_runs_that_take_too_long_are_counted(make_output: MakeOutput) -> None:
    """Of all rounds together, input and output included; jitter is what the slowest hundredth takes more."""
    (case,) = results(measure(RecordingDevice(make_output), MEASUREMENT), 2.0)[0].cases
    assert (case.deadline_ms, case.missed, case.total_ms.count) == (2.0, 8, 12)
    assert case.total_ms.p50 == pytest.approx(2.002)
    assert case.jitter_ms == pytest.approx(1.0)
    (unhurried,) = results(measure(RecordingDevice(make_output), MEASUREMENT), None)[0].cases
    assert (unhurried.deadline_ms, unhurried.missed) == (None, 0)


def test_memory_is_summed_up_where_it_is_known(make_output: MakeOutput) -> None:
    """A round in which the memory after loading was not known leaves none, since the others' would stand for it."""
    outputs = make_output(inference_peak=5, loaded=2), make_output(inference_peak=None, loaded=None)
    known, unknown = (Round(ours=output, baseline=None) for output in outputs)
    (both,) = results(Rounds(model="m", rounds=(known, known)), None)
    assert both.loaded_rss_bytes is not None
    assert both.inference_peak_rss_bytes is not None
    assert (both.loaded_rss_bytes.p50, both.inference_peak_rss_bytes.maximum) == (2, 5)
    (mixed,) = results(Rounds(model="m", rounds=(known, unknown)), None)
    assert (mixed.loaded_rss_bytes, mixed.inference_peak_rss_bytes) == (None, None)


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


def test_a_crash_stops_the_measurement(make_output: MakeOutput) -> None:
    """What the device raises is passed on, and nothing more is run."""
    device = RecordingDevice(make_output, fail_at=3)
    with pytest.raises(VerifyError):
        measure(device, MEASUREMENT)
    assert len(device.requests) == 3
