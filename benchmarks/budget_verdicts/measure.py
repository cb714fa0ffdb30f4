"""How often verdicts on budgets are wrong: a library beside its copy, and one 5 % worse with a budget of 3 %."""

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from builds import Built, find_build
from records import table_of

from budget_verdicts.slowed import ratios_of, slowed_library
from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.base.json import from_json, to_canonical_json
from ortrim.buildspec.buildspec import Budgets, as_the_official
from ortrim.devices.device import ProgramDevice
from ortrim.devices.host import Host
from ortrim.parity.inputs import Case
from ortrim.parity.measurements import Verdict, median
from ortrim.parity.runner import RunRequest
from ortrim.report.table import Table
from ortrim.verify.judge import LOAD, LOOKS, P50, PEAK, model_comparisons, settling
from ortrim.verify.measure import DeviceRuns, Measurement, Measuring, Rounds, carry_out

Kind = Literal["same", "slowed"]
WORDS: Final = {"same": "the same library", "slowed": "5 % worse"}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The verdict on one measure with a budget, and after how many rounds."""

    measure: str
    budget: float
    verdict: Verdict
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One verification of a model with so many cases: a library (`same` or `slowed`) beside the copy of the same."""

    kind: Kind
    cases: int
    load_average: float
    seconds: float
    judged: tuple[Judged, ...]
    ratios: dict[str, tuple[float, ...]]


HEADINGS: Final = ("library", "cases", "measure", "budget", "pass", "inconclusive", "fail", "rounds", "load")


def table(trials: Sequence[Trial]) -> Table:
    """Return for each library, number of cases, measure and budget, how many there were of each verdict."""
    return table_of(HEADINGS, list(_rows(trials)))


def true_ratios(trials: Iterable[Trial]) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the median ratio over all rounds of all trials, and how many these are, by kind and measure or case."""
    pooled: dict[tuple[str, str], list[float]] = {}
    for trial in trials:
        for name, ratios in trial.ratios.items():
            pooled.setdefault((trial.kind, name), []).extend(ratios)
    return {key: (median(ratios), len(ratios)) for key, ratios in sorted(pooled.items())}


def _rows(trials: Sequence[Trial]) -> Iterator[tuple[str, ...]]:
    keys = {(trial.kind, trial.cases, each.measure, each.budget) for trial in trials for each in trial.judged}
    for kind, cases, measure, budget in sorted(keys):
        own = [trial for trial in trials if (trial.kind, trial.cases) == (kind, cases)]
        found = [each for trial in own for each in trial.judged if (each.measure, each.budget) == (measure, budget)]
        counts = Counter(each.verdict for each in found)
        loads = [trial.load_average for trial in own]
        yield (
            *(WORDS[kind], str(cases), measure, f"{budget:.2f}"),
            *(str(counts[verdict]) for verdict in (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)),
            f"{median(each.rounds for each in found):.0f}",
            f"{min(loads):.1f}-{max(loads):.1f}",
        )


RECORD: Final = "verdicts.jsonl"
BUDGETS: Final[Mapping[Kind, tuple[float, ...]]] = {"same": (1.0, 1.01, 1.02, 1.03), "slowed": (1.03,)}
"""The first one is measured for; what the others would have come to is seen in the same rounds."""


def measure(console: Console, *, spec: Path, number: int, case_name: str, output: Path) -> tuple[Trial, ...]:
    """Ask for verdicts on the first model of a spec, with one of its cases or (empty) all, and write their table.

    Goes on until there are `number` of each kind.
    """
    require_writable(output)
    path = output.absolute() / RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    built = find_build(spec, console)
    cases = tuple(case for case in built.planned.cases[0] if case_name in {"", case.name})
    plan, trials = _plan(built, cases, path.parent), _read(path)
    with console.step("verdicts") as step, closing(Host()) as device:
        step.note("makes a library that is 5 % worse")
        slowed = slowed_library(device, plan, built.headers, path.parent)
        libraries: dict[Kind, Path] = {"same": plan.ours.library, "slowed": slowed}
        for kind in _missing(trials, len(cases), number):
            step.progress(len(trials), 2 * number, kind)
            trials.append(trial(device, replace(plan, ours=replace(plan.ours, library=libraries[kind])), kind))
            with path.open("a", encoding="utf-8") as file:
                file.write(to_canonical_json(trials[-1]) + "\n")
    shown = table(trials)
    write_atomically(path.with_suffix(".md"), shown.markdown() + "\n")
    console.render(shown.terminal())
    for (library, name), (ratio, count) in true_ratios(trials).items():
        console.note(f"{library}, {name}: {ratio:.4f} in {count:,} rounds")
    return tuple(trials)


def _plan(built: Built, cases: tuple[Case, ...], folder: Path) -> Measurement:
    """Return the measurement of the built library beside its copy, with the same model and settings."""
    models = built.planned.models
    library, baseline = (Path(shutil.copy(built.library, folder / name)) for name in ("same.so", "copy.so"))
    model, name = models.converted[0].path, models.prepared[0].name
    ours = RunRequest(runner=built.runner, library=library, model=model, cases=cases, name=name)
    return Measurement(ours=ours, baseline=replace(ours, library=baseline, session=as_the_official(ours.session)))


def _read(path: Path) -> list[Trial]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [from_json(Trial, line) for line in lines]


def _missing(trials: list[Trial], cases: int, number: int) -> list[Kind]:
    there = Counter(each.kind for each in trials if each.cases == cases)
    kinds: tuple[Kind, ...] = ("same", "slowed")
    return [kind for done in range(number) for kind in kinds if there[kind] <= done]


def trial(device: ProgramDevice, plan: Measurement, kind: Kind) -> Trial:
    """Verify once, as `invoke verify` does it. Raises what `carry_out` raises."""
    started = time.monotonic()
    budgets = _budgets(BUDGETS[kind][0])
    measuring, progress = Measuring(plan), DeviceRuns(plan.rounds, lambda *_: None)
    carry_out(device, measuring.runs(), progress)
    carry_out(device, settling(measuring, budgets), progress)
    rounds = measuring.rounds
    return Trial(
        kind=kind,
        cases=len(plan.ours.cases),
        load_average=os.getloadavg()[0],
        seconds=time.monotonic() - started,
        judged=tuple(each for budget in BUDGETS[kind] for each in _judged(rounds, budget)),
        ratios=ratios_of(rounds),
    )


def _budgets(ratio: float) -> Budgets:
    return Budgets(p50_ratio=ratio, load_ratio=ratio, peak_rss_ratio=ratio)


def _judged(rounds: Rounds, budget: float) -> Iterator[Judged]:
    """Yield the verdicts that come of `settling` with a budget: each measure's at the first look that is conclusive."""
    looks = [count for count in LOOKS if count < len(rounds.rounds) + len(rounds.shorter)]
    prefixes = [replace(rounds, shorter=rounds.shorter[: count - len(rounds.rounds)]) for count in looks] + [rounds]
    for measure in (P50, PEAK, LOAD):
        for prefix in prefixes:
            lines = model_comparisons(_budgets(budget), (prefix,))
            (verdict,) = (line.verdict for line in lines if line.measure == measure)
            if verdict is not Verdict.INCONCLUSIVE:
                break
        yield Judged(measure=measure, budget=budget, verdict=verdict, rounds=len(prefix.of(measure)))
