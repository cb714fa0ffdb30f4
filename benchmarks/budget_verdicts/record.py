"""What came of asking for verdicts: how many were right, and the table of it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ortrim.parity.measurements import Verdict, median

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


def table(trials: Sequence[Trial]) -> str:
    """Return a Markdown table: for each library, number of cases, measure and budget, how many of each verdict."""
    head = "| library | cases | measure | budget | pass | inconclusive | fail | rounds | load |\n"
    return head + "|---|---|---|---|---|---|---|---|---|\n" + "".join(_lines(trials))


def true_ratios(trials: Iterable[Trial]) -> dict[tuple[str, str], tuple[float, int]]:
    """Return the median ratio over all rounds of all trials, and how many these are, by kind and measure or case."""
    pooled: dict[tuple[str, str], list[float]] = {}
    for trial in trials:
        for name, ratios in trial.ratios.items():
            pooled.setdefault((trial.kind, name), []).extend(ratios)
    return {key: (median(ratios), len(ratios)) for key, ratios in sorted(pooled.items())}


def _lines(trials: Sequence[Trial]) -> Iterable[str]:
    keys = {(trial.kind, trial.cases, each.measure, each.budget) for trial in trials for each in trial.judged}
    for kind, cases, measure, budget in sorted(keys):
        own = [trial for trial in trials if (trial.kind, trial.cases) == (kind, cases)]
        found = [each for trial in own for each in trial.judged if (each.measure, each.budget) == (measure, budget)]
        counts = Counter(each.verdict for each in found)
        loads = [trial.load_average for trial in own]
        cells = (
            *(WORDS[kind], str(cases), measure, f"{budget:.2f}"),
            *(str(counts[verdict]) for verdict in (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.FAIL)),
            f"{median(each.rounds for each in found):.0f}",
            f"{min(loads):.1f}-{max(loads):.1f}",
        )
        yield f"| {' | '.join(cells)} |\n"
