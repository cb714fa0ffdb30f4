"""What was measured of parity, and the tables of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from ortrim.buildspec.tolerances import (
    DEFAULT_TOLERANCES,
    EXACT,
    QUANTIZED,
    QUANTIZED_ELSEWHERE,
    SAME_GRAPH,
    SAME_GRAPH_ELSEWHERE,
    Bounds,
)
from ortrim.parity.measurements import HostFacts, quantile
from ortrim.report.table import Table, columns
from parity.distribution import Noise
from parity.proof import Mutant

NOISE_COLUMNS: Final = (
    "compared with",
    "element type",
    "outputs",
    "largest difference: 50 %, 90 %, 99 %, all",
    "RMS, all",
    "ULPs, all",
    "1 - cosine, all",
    "allowed: scale + relative + ULPs",
    "allowed: RMS",
)
MUTANT_COLUMNS: Final = (
    "mutation",
    "mutants",
    "end the process",
    "change an output",
    "matter",
    "of these caught by the reference",
    "caught",
    "of lesser changes caught",
)
ELSEWHERE: Final = ", other instructions"
LOCAL: Final = "x64"
"""How the names of machines begin that are this one."""
SHARES: Final = (0.5, 0.9, 0.99, 1.0)
NOTHING: Final = 1e-15
"""Shares up to it are those of arithmetic in float64 itself."""
LEAST_NOISE: Final = 1e-6
"""Of a quantized model, in shares of an output's magnitude: float32 has no more digits than that to lose."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """All that was measured: differences of untouched models, and what became of each mutant."""

    schema: Literal["ortrim-parity/1"] = "ortrim-parity/1"
    machine: HostFacts
    noise: tuple[Noise, ...] = ()
    mutants: tuple[Mutant, ...] = ()

    def limit_of(self, mutant: Mutant) -> float:
        """Return the largest difference that conditions alone made of the model's kind."""
        return max(
            LEAST_NOISE,
            *(
                each.largest
                for each in self.noise
                if each.compared == "reference"
                and (each.quantized or each.element_type == "float32")
                and each.quantized == mutant.quantized
                and (not each.quantized or (each.model == mutant.model and each.machine.startswith(LOCAL)))
            ),
            0.0,
        )

    def matters(self, mutant: Mutant) -> bool:
        """Whether a mutant changes an output by more than conditions do, or ends the process."""
        return mutant.outcome == "ended" or mutant.change > self.limit_of(mutant)


def noise_table(noise: Iterable[Noise]) -> Table:
    """Return by element type what differences there are and what tolerances allow."""
    groups = [list(group) for _, group in groupby(sorted(noise, key=_group), _group)]
    return Table(columns=columns("text", *NOISE_COLUMNS), rows=list(map(_noise_row, groups)))


def _group(noise: Noise) -> tuple[str, bool, str]:
    """Return what outputs are compared with and where, whether the model is quantized, and the element type."""
    elsewhere = noise.compared == "same graph" and not noise.machine.startswith(LOCAL)
    return noise.compared + (ELSEWHERE if elsewhere else ""), noise.quantized, noise.element_type


def _noise_row(rows: Sequence[Noise]) -> tuple[str, ...]:
    compared, quantized, kind = _group(rows[0])
    bounds = bounds_for(compared, kind, quantized=quantized)
    largest = sorted(each.largest for each in rows)
    ulps = max(each.ulps for each in rows)
    return (
        compared,
        f"{kind}{', quantized model' if quantized else ''}",
        f"{len(rows):,}",
        ", ".join(_shown(quantile(largest, share)) for share in SHARES),
        _shown(max(each.rms for each in rows)),
        str(ulps) if kind in {"float16", "bfloat16"} else "",
        _shown(max(1 - each.cosine for each in rows)),
        _allowed(bounds),
        _shown(bounds.rms) if bounds != EXACT else "",
    )


def _allowed(bounds: Bounds) -> str:
    parts = (_shown(each) for each in (bounds.scale, bounds.relative) if each)
    return " + ".join([*parts, *([f"{bounds.ulps:g} ULPs"] if bounds.ulps else [])]) or "equal"


def bounds_for(compared: str, kind: str, *, quantized: bool) -> Bounds:
    by_original = QUANTIZED if quantized else DEFAULT_TOLERANCES
    elsewhere = QUANTIZED_ELSEWHERE if quantized else SAME_GRAPH_ELSEWHERE
    defaults = {"same graph": SAME_GRAPH, "same graph" + ELSEWHERE: elsewhere}.get(compared, by_original)
    return defaults.get(kind, EXACT)


def _shown(value: float) -> str:
    return "0" if value <= NOTHING else f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-").replace("e+00", "")


def mutant_table(record: Record) -> Table:
    """Return by kind of mutation how many mutants matter and how many are caught."""
    kinds = dict.fromkeys(each.kind for each in record.mutants)
    groups = {kind: [each for each in record.mutants if each.kind == kind] for kind in kinds} | {"all": record.mutants}
    rows = [(kind, *_mutant_cells(group, record)) for kind, group in groups.items()]
    return Table(columns=columns("text", *MUTANT_COLUMNS), rows=rows)


def _mutant_cells(mutants: Sequence[Mutant], record: Record) -> Iterator[str]:
    matter = [each for each in mutants if record.matters(each)]
    lesser = [each for each in mutants if each.outcome == "differs" and not record.matters(each)]
    counts = (
        len(mutants),
        sum(each.outcome == "ended" for each in mutants),
        sum(each.outcome == "differs" for each in mutants),
        len(matter),
        sum(each.outcome == "ended" or each.by_reference for each in matter),
        sum(each.caught for each in matter),
    )
    yield from (f"{count:,}" for count in counts)
    yield f"{sum(each.caught for each in lesser):,} of {len(lesser):,}"
