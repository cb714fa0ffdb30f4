"""Further rounds where a verdict is in doubt, and how often verdicts are wrong on machines that are not quiet."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ortrim.buildspec.buildspec import Budgets
from ortrim.devices.device import ProgramDevice
from ortrim.parity import measurements
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import Verdict
from ortrim.parity.runner import RunnerOutput, RunRequest
from ortrim.verify.judge import LOAD, LOOKS, P50, PEAK, NotMeasurable, model_comparisons, settling
from ortrim.verify.measure import DeviceRuns, Measurement, Measuring, Rounds, carry_out

MakeOutput = Callable[..., RunnerOutput]
CASES = tuple(Case(name=name, folder=Path(name), digest="d") for name in ("one", "two"))
OURS = RunRequest(runner=Path("/runner"), library=Path("/ours.so"), model=Path("/m.ort"), cases=CASES, name="m")
PLAN = Measurement(ours=OURS, baseline=replace(OURS, library=Path("/theirs.so"), model=Path("/m.onnx")))


class NoisyMachine(ProgramDevice):
    """A machine that does other work too, and slows down; ours takes `worse` times as much as the baseline.

    Each process meets what a measured one did: mostly noise of 1 %, in bursts that outlast a process a third more time
    and much more noise; loading is preempted, and the peak of memory varies by 4 % however quiet the machine is.
    """

    name = "noisy"

    def __init__(self, make: MakeOutput, seed: int, worse: float, *, quiet: bool = False) -> None:
        self.requests: list[RunRequest] = []
        self._make, self._worse, self._quiet = make, worse, quiet
        self._random = np.random.default_rng(seed)
        self._burst = False

    def facts(self) -> measurements.HostFacts:
        raise NotImplementedError

    def run(self, request: RunRequest) -> RunnerOutput:
        self.requests.append(request)
        self._burst = not self._quiet and bool(self._random.random() < (0.6 if self._burst else 0.15))
        drift = 1 + 0.2 * np.sin(len(self.requests) / 100)
        worse = self._worse if request.library == OURS.library else 1.0
        waited = float(self._random.exponential(20))
        cases = {case.name: worse * drift * self._factor() for case in request.cases}
        peak = round(10_000_000 * worse * (0.96 + 0.08 * self._random.random()))
        output = self._make(load=8 * worse * drift * self._factor() + waited, peak=peak, **cases)
        return replace(output, load_waited_ms=waited, cases=output.cases if cases else ())

    def _factor(self) -> float:
        spread = 0.1 if self._burst else 0.01
        return float(np.exp(self._random.normal(0.3 if self._burst else 0.0, spread)))


def verified(
    machine: NoisyMachine,
    budgets: Budgets,
    plan: Measurement = PLAN,
    rounds: int = 63,
    told: list[str] | None = None,
    **options: Any,
) -> Rounds:
    """Return the rounds that it takes when there is time for so many further ones."""
    measuring = Measuring(plan)
    progress = DeviceRuns(plan.rounds, lambda _done, _total, text: (told if told is not None else []).append(text))
    carry_out(machine, measuring.runs(), progress)
    clock = {"clock": lambda: float(len(machine.requests)), "most_seconds": 2 * rounds}
    carry_out(machine, settling(measuring, budgets, **{**clock, **options}), progress)
    return measuring.rounds


def ratios(ratio: float) -> Budgets:
    return Budgets(p50_ratio=ratio, load_ratio=ratio, peak_rss_ratio=ratio)


def verdicts(rounds: Rounds, budgets: Budgets) -> dict[str, Verdict]:
    return {line.measure: line.verdict for line in model_comparisons(budgets, (rounds,)) if line.budget is not None}


ONLY: dict[str, Callable[[float], Budgets]] = {
    P50: lambda ratio: Budgets(p50_ratio=ratio),
    PEAK: lambda ratio: Budgets(peak_rss_ratio=ratio),
    LOAD: lambda ratio: Budgets(load_ratio=ratio),
}


def hundred(make: MakeOutput, measured: str, ratio: float, worse: float, rounds: int) -> Counter[Verdict]:
    """Return the verdicts on one measure of a hundred machines, each with time for so many further rounds."""
    budgets, plan = ONLY[measured](ratio), PLAN.repeated(OURS.repetition, PLAN.rounds, CASES[:1])
    machines = (NoisyMachine(make, seed, worse) for seed in range(100))
    return Counter(verdicts(verified(machine, budgets, plan, rounds), budgets)[measured] for machine in machines)


@pytest.mark.parametrize("measured", ONLY)
def test_five_percent_more_fail_a_budget_of_three(make_output: MakeOutput, measured: str) -> None:
    """In at least 95 of 100 verifications on a machine with other work, and they never pass."""
    found = hundred(make_output, measured, 1.03, 1.05, rounds=135)
    assert found[Verdict.FAIL] >= 95
    assert found[Verdict.PASS] == 0


@pytest.mark.parametrize("measured", ONLY)
def test_the_same_library_does_not_fail(make_output: MakeOutput, measured: str) -> None:
    """In at least 95 of 100, although the budget allows nothing more than the baseline takes."""
    found = hundred(make_output, measured, 1.0, 1.0, rounds=63)
    assert found[Verdict.FAIL] <= 5
    assert found[Verdict.PASS] <= 5


def test_a_clear_verdict_takes_no_further_round(make_output: MakeOutput) -> None:
    """Neither one that passes nor one that fails, on a machine that is quiet or is not."""
    for worse in (0.3, 3.0):
        machine = NoisyMachine(make_output, 0, worse)
        assert verified(machine, ratios(1.0)).shorter == ()
        assert len(machine.requests) == 2 * LOOKS[0]


def test_without_budgets_nothing_is_in_doubt(make_output: MakeOutput) -> None:
    assert verified(NoisyMachine(make_output, 0, 1.0), Budgets()).shorter == ()


def test_what_long_runs_alone_tell_is_not_measured_again(make_output: MakeOutput) -> None:
    """A 99th percentile of few runs would be another figure."""
    machine = NoisyMachine(make_output, 0, 1.0)
    budgets = Budgets(p99_ms=1.05)
    assert verdicts(verified(machine, budgets), budgets)["latency p99"] is Verdict.INCONCLUSIVE
    assert len(machine.requests) == 2 * LOOKS[0]


def test_what_means_nothing_is_not_measured_again(make_output: MakeOutput) -> None:
    """No verdict could come of it."""
    machine = NoisyMachine(make_output, 0, 1.0)
    not_measurable = NotMeasurable(memory="m", time="t")
    assert verified(machine, ratios(1.0), not_measurable=lambda: not_measurable).shorter == ()


@pytest.mark.parametrize(
    ("budgets", "cases", "runs"),
    [
        (Budgets(load_ratio=1.0), [], 1),
        (Budgets(peak_rss_ratio=1.0), ["one", "two"], 1),
        (Budgets(p50_ratio=1.0), ["one", "two"], 20),
    ],
)
def test_a_further_round_runs_what_is_in_doubt(
    make_output: MakeOutput, budgets: Budgets, cases: list[str], runs: int
) -> None:
    """Loading takes no case, memory each of them once, latency a few runs."""
    machine = NoisyMachine(make_output, 3, 1.0)
    rounds = verified(machine, budgets)
    first = machine.requests[2 * LOOKS[0]]
    assert ([case.name for case in first.cases], first.repetition.runs) == (cases, runs)
    orders = [request.library.name for request in machine.requests]
    assert orders[:4] == ["ours.so", "theirs.so", "theirs.so", "ours.so"]
    assert orders[2::4] == orders[1::4]
    assert len(rounds.rounds) == LOOKS[0]


def test_a_case_that_is_clear_is_not_run_again(make_output: MakeOutput) -> None:
    """One case is as slow as the baseline's, the other one far faster."""

    class Uneven(NoisyMachine):
        """A machine on which ours is fast in one case."""

        def run(self, request: RunRequest) -> RunnerOutput:
            output = super().run(request)
            if request.library != OURS.library:
                return output
            fast = [
                replace(case, inference_ms=tuple(ms / 9 for ms in case.inference_ms)) if case.name == "two" else case
                for case in output.cases
            ]
            return replace(output, cases=tuple(fast))

    machine = Uneven(make_output, 0, 1.0)
    verified(machine, Budgets(p50_ratio=1.0))
    assert {tuple(case.name for case in request.cases) for request in machine.requests} == {("one", "two"), ("one",)}


def test_there_is_an_end_to_it(make_output: MakeOutput) -> None:
    """What cannot be told apart stays inconclusive when the time is over."""
    machine = NoisyMachine(make_output, 3, 1.0)
    rounds = verified(machine, ratios(1.0), rounds=20)
    assert set(verdicts(rounds, ratios(1.0)).values()) == {Verdict.INCONCLUSIVE}
    assert len(machine.requests) == 2 * (LOOKS[0] + 20)


def test_what_is_in_doubt_is_reported(make_output: MakeOutput) -> None:
    """A progress line can say why it takes longer."""
    told: list[str] = []
    machine = NoisyMachine(make_output, 3, 1.0)
    verified(machine, ratios(1.0), told=told)
    assert list(dict.fromkeys(told))[:2] == [
        "measuring m",
        "m: latency p50 and load and peak RSS in doubt, 18 rounds",
    ]
