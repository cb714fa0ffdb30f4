from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ortrim.binaries.elf import LibrarySize
from ortrim.buildspec.buildspec import Budgets
from ortrim.parity.measurements import Comparison, Verdict
from ortrim.parity.runner import RunnerOutput
from ortrim.verify.judge import ALL_MEASURABLE, NotMeasurable, library_comparisons, model_comparisons
from ortrim.verify.measure import Round, Rounds

MakeOutput = Callable[..., RunnerOutput]


def size(file_bytes: int) -> LibrarySize:
    return LibrarySize(
        file_bytes=file_bytes, loadable_bytes=0, compressed_bytes=file_bytes // 2, components=(), largest_symbols=()
    )


def of_library(budgets: Budgets) -> dict[str, Comparison]:
    """Compare a library of 100 bytes with a baseline of 1000 and return the lines by measure."""
    return {line.measure: line for line in library_comparisons(budgets, size(100), size(1000), 70)}


def judged(budgets: Budgets, model: Rounds, not_measurable: NotMeasurable = ALL_MEASURABLE) -> dict[str, Comparison]:
    lines = model_comparisons(budgets, (model,), not_measurable)
    assert len({(line.measure, line.budget_is_ratio) for line in lines}) == len(lines)
    return {line.measure: line for line in lines}


def rounds(make: MakeOutput, ours: Sequence[Any], baseline: Sequence[Any], key: str = "only") -> Rounds:
    pairs = zip(ours, baseline, strict=True)
    turns = tuple(Round(ours=make(**{key: one}), baseline=make(**{key: other})) for one, other in pairs)
    return Rounds(model="m", rounds=turns)


def test_without_budgets_nothing_is_judged(make_output: MakeOutput) -> None:
    """Every measure has its line, and none a verdict."""
    library, lines = of_library(Budgets()), judged(Budgets(), rounds(make_output, [1.0], [2.0]))
    assert list(library) == ["library", "library compressed", "package"]
    assert list(lines) == ["peak RSS", "load", "latency p50", "latency p99"]
    assert {line.verdict for line in (*library.values(), *lines.values())} == {Verdict.NOT_JUDGED}
    assert library["library"].ratio == 0.1
    assert library["package"].baseline is None
    assert lines["latency p50"].ratio == 0.5


@pytest.mark.parametrize(
    ("budgets", "verdict"),
    [
        (Budgets(library_bytes=100), Verdict.PASS),
        (Budgets(library_bytes=99), Verdict.FAIL),
        (Budgets(library_ratio=0.1), Verdict.PASS),
        (Budgets(library_ratio=0.0999), Verdict.FAIL),
    ],
)
def test_sizes_are_exact(budgets: Budgets, verdict: Verdict) -> None:
    assert of_library(budgets)["library"].verdict is verdict


def test_both_budgets_of_a_measure_are_judged() -> None:
    lines = library_comparisons(Budgets(library_bytes=50, library_ratio=0.5), size(100), size(1000), 1)
    found = [(line.budget, line.budget_is_ratio, line.verdict) for line in lines if line.measure == "library"]
    assert found == [(0.5, True, Verdict.PASS), (50, False, Verdict.FAIL)]


def test_a_library_without_a_baseline() -> None:
    (line, *_) = library_comparisons(Budgets(library_ratio=0.1), size(100), size(0), 1)
    assert (line.baseline, line.ratio, line.verdict) == (None, None, Verdict.NOT_JUDGED)
    assert line.reason


@pytest.mark.parametrize(
    ("budget", "verdict"),
    [(12, Verdict.PASS), (11, Verdict.INCONCLUSIVE), (9, Verdict.INCONCLUSIVE), (8, Verdict.FAIL)],
)
def test_memory_is_judged_as_times_are(make_output: MakeOutput, budget: int, verdict: Verdict) -> None:
    """The same library takes some pages more or less in each process."""
    found = judged(Budgets(peak_rss_bytes=budget), rounds(make_output, [9, 11, 12], [20, 20, 20], "peak"))["peak RSS"]
    assert (found.ours, found.verdict) == (11, verdict)


SPREAD = [0.9, 1.0, 1.0, 1.1, 1.2, 1.2, 1.3, 1.3, 1.4]


@pytest.mark.parametrize(
    ("budget", "verdict"),
    [(1.3, Verdict.PASS), (1.25, Verdict.INCONCLUSIVE), (0.9, Verdict.INCONCLUSIVE), (0.89, Verdict.FAIL)],
)
def test_times_inside_the_spread_are_inconclusive(make_output: MakeOutput, budget: float, verdict: Verdict) -> None:
    """All of nine rounds are over a budget that fails; of those that pass one may be."""
    assert judged(Budgets(p50_ratio=budget), rounds(make_output, SPREAD, [1.0] * 9))["latency p50"].verdict is verdict
    assert judged(Budgets(load_ratio=budget), rounds(make_output, SPREAD, [1.0] * 9, "load"))["load"].verdict is verdict
    assert judged(Budgets(p99_ms=budget), rounds(make_output, SPREAD, [9.0] * 9))["latency p99"].verdict is verdict


@pytest.mark.parametrize(("budget", "spread"), [(1.0, 1 - 0.9 / 1.2), (1.3, 1.3 / 1.2 - 1), (None, 0.2 / 1.2)])
def test_a_verdict_can_be_followed(make_output: MakeOutput, budget: float | None, spread: float) -> None:
    """What is shown after ± reaches as far towards the budget as the interval does."""
    found = judged(Budgets(p50_ratio=budget), rounds(make_output, SPREAD, [1.0] * 9))["latency p50"]
    assert found.ratio == 1.2
    assert found.spread == pytest.approx(spread)


@pytest.mark.parametrize(("cases", "verdict"), [(1, Verdict.FAIL), (8, Verdict.INCONCLUSIVE)])
def test_of_many_cases_one_fails_by_chance(make_output: MakeOutput, cases: int, verdict: Verdict) -> None:
    """What is sure enough of one case is not of the worst of eight."""
    slow = [*[1.0] * 3, *[1.1] * 15]
    turns = tuple(
        Round(
            ours=make_output(**{f"c{number}": ms if number == 0 else 0.9 for number in range(cases)}),
            baseline=make_output(**{f"c{number}": 1.0 for number in range(cases)}),
        )
        for ms in slow
    )
    found = judged(Budgets(p50_ratio=1.05), Rounds(model="m", rounds=turns))["latency p50"]
    assert (found.case, found.verdict) == ("c0", verdict)


@pytest.mark.parametrize(("ratio", "verdict"), [(1.001, Verdict.INCONCLUSIVE), (1.003, Verdict.FAIL)])
def test_a_copy_of_the_baseline_does_not_fail(make_output: MakeOutput, ratio: float, verdict: Verdict) -> None:
    """However many rounds there are: two copies of one file are not quite alike in memory."""
    found = judged(Budgets(load_ratio=1.0), rounds(make_output, [ratio] * 144, [1.0] * 144, "load"))["load"]
    assert found.verdict is verdict


def test_rounds_for_one_measure_tell_of_no_other(make_output: MakeOutput) -> None:
    """A short round's figures of what it was not made for are not comparable."""
    long = rounds(make_output, [1.0] * 9, [1.0] * 9)
    short = Round(ours=make_output(load=99.0, only=5.0), baseline=make_output(only=1.0), only=frozenset({"load"}))
    found = judged(Budgets(), replace(long, shorter=(short,) * 11))
    assert (found["latency p50"].ratio, found["load"].ratio, found["peak RSS"].ratio) == (1.0, 9.9, 1.0)


def test_waiting_for_a_processor_is_not_loading(make_output: MakeOutput) -> None:
    """What others on the machine took of the time is no property of the library."""
    ours, baseline = (replace(make_output(load=ms), load_waited_ms=waited) for ms, waited in ((30.0, 20.0), (9.0, 4.0)))
    found = judged(Budgets(load_ms=10.0), Rounds(model="m", rounds=(Round(ours=ours, baseline=baseline),)))["load"]
    assert (found.ours, found.baseline, found.ratio, found.verdict) == (10.0, 5.0, 2.0, Verdict.PASS)


def test_the_worst_case_of_a_model_is_judged(make_output: MakeOutput) -> None:
    turn = Round(ours=make_output(short=2.0, long=10.0), baseline=make_output(short=1.0, long=10.0))
    models = Rounds(model="m", rounds=(turn,))
    assert judged(Budgets(p50_ratio=1.5), models)["latency p50"].ours == 2.0
    assert judged(Budgets(p50_ms=20.0), models)["latency p50"].ours == 10.0
    missed = judged(Budgets(deadline_ms=5.0), models)["missed deadlines"]
    assert (missed.case, missed.verdict) == ("long", Verdict.FAIL)


def test_budgets_hold_for_each_model(make_output: MakeOutput) -> None:
    good, bad = (rounds(make_output, [ms], [1.0]) for ms in (1.0, 3.0))
    lines = model_comparisons(Budgets(p50_ratio=2.0), (good, Rounds(model="n", rounds=bad.rounds)))
    verdicts = {line.model: line.verdict for line in lines if line.measure == "latency p50"}
    assert verdicts == {"m": Verdict.PASS, "n": Verdict.FAIL}


def test_a_ratio_without_a_baseline_is_no_pass(make_output: MakeOutput) -> None:
    """A baseline of zero gives no ratio, and a budget for it cannot be met."""
    found = judged(Budgets(load_ratio=1.0), rounds(make_output, [1.0], [0.0], "load"))["load"]
    assert (found.ratio, found.verdict) == (None, Verdict.INCONCLUSIVE)


def test_without_a_baseline_ratios_are_not_judged(make_output: MakeOutput) -> None:
    """What is absolute is judged, and the line of a ratio says why it is not."""
    alone = Rounds(model="m", rounds=(Round(ours=make_output(only=1.0), baseline=None),))
    found = judged(Budgets(p50_ratio=0.1, load_ms=5.0, deadline_ms=0.5), alone)
    assert (found["latency p50"].verdict, found["latency p50"].baseline) == (Verdict.NOT_JUDGED, None)
    assert found["latency p50"].reason == "there is no baseline to compare with"
    assert (found["load"].verdict, found["load"].reason) == (Verdict.FAIL, "")
    assert (found["missed deadlines"].verdict, found["missed deadlines"].baseline) == (Verdict.FAIL, None)


TIMES = {"load", "latency p50", "latency p99", "missed deadlines"}


@pytest.mark.parametrize(
    ("not_measurable", "unjudged"),
    [
        (NotMeasurable(time="time: t"), TIMES),
        (NotMeasurable(memory="memory: m"), {"peak RSS"}),
        (NotMeasurable(memory="memory: m", time="time: t"), {"peak RSS", *TIMES}),
    ],
)
def test_what_means_nothing_is_not_judged(
    make_output: MakeOutput, not_measurable: NotMeasurable, unjudged: set[str]
) -> None:
    """Missed budgets of it do not fail, and each line says why."""
    budgets = Budgets(peak_rss_bytes=1, load_ms=0.1, p50_ms=0.1, p99_ms=0.1, deadline_ms=0.1)
    found = judged(budgets, rounds(make_output, [1.0], [2.0]), not_measurable)
    reasons = {measure: line.reason for measure, line in found.items() if line.reason}
    assert set(reasons) == unjudged
    assert set(reasons.values()) == {text for text in (not_measurable.memory, not_measurable.time) if text}
    assert {found[measure].verdict for measure in {"peak RSS", *TIMES} - unjudged} <= {Verdict.FAIL}
    assert {found[measure].verdict for measure in unjudged} == {Verdict.NOT_JUDGED}


QUIET, STALLED, SLOW = (1.0,) * 200, (*(1.0,) * 199, 40.0), (12.0,) * 200


@pytest.mark.parametrize(
    ("processes", "missed", "verdict"),
    [
        ([QUIET] * 9, 0, Verdict.PASS),
        ([*[QUIET] * 8, STALLED], 0, Verdict.PASS),
        ([*[QUIET] * 8, SLOW], 0, Verdict.PASS),
        ([*[QUIET] * 4, *[STALLED] * 5], 1, Verdict.INCONCLUSIVE),
        ([*[QUIET] * 2, *[STALLED] * 7], 1, Verdict.INCONCLUSIVE),
        ([QUIET, *[STALLED] * 8], 1, Verdict.FAIL),
        ([*[QUIET] * 3, *[SLOW] * 6], 200, Verdict.INCONCLUSIVE),
        ([SLOW] * 9, 200, Verdict.FAIL),
    ],
)
def test_deadlines_are_judged_by_rounds(
    make_output: MakeOutput, processes: list[tuple[float, ...]], missed: int, verdict: Verdict
) -> None:
    """A stall of the machine is no failure of the model; one that comes back in nearly every process is."""
    found = judged(Budgets(deadline_ms=10.0), rounds(make_output, processes, [QUIET] * 9))["missed deadlines"]
    assert (found.ours, found.verdict, found.unit, found.budget, found.ratio) == (missed, verdict, "runs", 0, None)


def counted(make: MakeOutput, ours: Sequence[int | None], baseline: Sequence[int | None]) -> Rounds:
    """Make rounds of two cases, the first of which takes so many instructions in each; the other takes few."""

    def output(first: int | None, second: int) -> RunnerOutput:
        made = make(one=1.0, two=1.0)
        numbers = (first, None if first is None else second)
        cases = tuple(
            replace(case, instructions=None if number is None else (number, number + 2, number + 1))
            for case, number in zip(made.cases, numbers, strict=True)
        )
        return replace(made, cases=cases)

    turns = zip(ours, baseline, strict=True)
    return Rounds(
        model="m", rounds=tuple(Round(ours=output(one, 10), baseline=output(other, 20)) for one, other in turns)
    )


@pytest.mark.parametrize(
    ("budgets", "verdict"),
    [
        (Budgets(), Verdict.NOT_JUDGED),
        (Budgets(instructions=96), Verdict.PASS),
        (Budgets(instructions=95), Verdict.FAIL),
        (Budgets(instructions_ratio=1.0), Verdict.PASS),
        (Budgets(instructions_ratio=0.95), Verdict.FAIL),
    ],
)
def test_instructions_are_judged_where_they_are_counted(
    make_output: MakeOutput, budgets: Budgets, verdict: Verdict
) -> None:
    """The median of a run's, of the case that stands worst; times that mean nothing do not matter."""
    line = judged(budgets, counted(make_output, [95] * 3, [99] * 3), NotMeasurable(time="time: no"))["instructions"]
    assert (line.verdict, line.ours, line.baseline, line.unit, line.reason) == (verdict, 96, 100, "instructions", "")
    assert line.case == "one" or budgets.instructions_ratio or not budgets.instructions


def test_instructions_that_nobody_counts_pass_for_nothing(make_output: MakeOutput) -> None:
    """Without a budget there is no line; a budget has one that says why it is not judged."""
    uncounted = counted(make_output, [None] * 3, [None] * 3)
    assert "instructions" not in judged(Budgets(), uncounted)
    found = model_comparisons(Budgets(instructions=5, instructions_ratio=0.5), (uncounted,))
    lines = [line for line in found if line.measure == "instructions"]
    assert [(line.budget, line.verdict) for line in lines] == [(0.5, Verdict.NOT_JUDGED), (5, Verdict.NOT_JUDGED)]
    assert all("qemu-system" in line.reason for line in lines)


def test_a_baseline_that_counts_nothing_has_no_ratio(make_output: MakeOutput) -> None:
    """The official library may not run where ours does."""
    line = judged(Budgets(instructions_ratio=0.5), counted(make_output, [95] * 3, [None] * 3))["instructions"]
    assert (line.ours, line.ratio, line.verdict) == (96, None, Verdict.NOT_JUDGED)
    assert line.reason
