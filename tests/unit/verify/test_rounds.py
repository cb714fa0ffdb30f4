import dataclasses
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.devices.device import ProgramDevice
from ortrim.errors import VerifyError
from ortrim.parity import measurements
from ortrim.parity.runner import RunnerOutput, RunRequest
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
    """Neither library always runs on the machine that the other has warmed."""
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
    """No other library is run, and the results have none."""
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
