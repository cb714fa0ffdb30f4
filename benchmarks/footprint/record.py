"""What was measured: `footprint.json`."""

from dataclasses import dataclass, replace
from typing import Literal, Self

from build_time.record import BUSY_LIMIT

from ortrim.parity.measurements import HostFacts


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library of a spec, and how often its outputs were compared with the full runtime's and agreed."""

    spec: str
    contender: str
    sha256: str
    file_bytes: int
    compressed_bytes: int
    outputs: int = 0
    outputs_agree: int = 0
    packed: bool = False


@dataclass(frozen=True, kw_only=True)
class ModelKind:
    """What decides on what is asked of a model: whether it has convolutions, and whether its spec names a layout."""

    spec: str
    model: str
    convolutions: bool
    layout: bool


@dataclass(frozen=True, kw_only=True)
class CaseSample:
    """One case in one process, milliseconds: its first run, input and output included, and what later ones took."""

    case: str
    runs: int
    first_run_ms: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One process: one contender with one model in one round."""

    contender: str
    load_ms: float
    peak_rss_bytes: int
    cases: tuple[CaseSample, ...]


@dataclass(frozen=True, kw_only=True)
class Round:
    """All contenders, one right after the other, with one model. `busy_processors` were at work just before."""

    spec: str
    model: str
    key: str
    number: int
    started: str
    busy_processors: float
    samples: tuple[Sample, ...]

    @property
    def disturbed(self) -> bool:
        return self.busy_processors > BUSY_LIMIT

    def of(self, contender: str) -> Sample | None:
        return next((sample for sample in self.samples if sample.contender == contender), None)


@dataclass(frozen=True, kw_only=True)
class Record:
    """All rounds on one machine, and the libraries and models that were measured last of each spec."""

    schema: Literal["ortrim-footprint/2"] = "ortrim-footprint/2"
    machine: HostFacts
    libraries: tuple[Library, ...] = ()
    kinds: tuple[ModelKind, ...] = ()
    rounds: tuple[Round, ...] = ()

    def of(self, spec: str, model: str, key: str) -> tuple[Round, ...]:
        found = (each for each in self.rounds if (each.spec, each.model, each.key) == (spec, model, key))
        return tuple(sorted(found, key=lambda each: each.number))

    def latest(self) -> tuple[tuple[Round, ...], ...]:
        """Return the rounds of each model, those that have the key of its newest one, in the order of the record."""
        names = dict.fromkeys((each.spec, each.model) for each in self.rounds)
        newest = {(each.spec, each.model): each.key for each in sorted(self.rounds, key=lambda each: each.started)}
        return tuple(self.of(*name, newest[name]) for name in names)

    def with_round(self, new: Round) -> Self:
        """Return the record with a round more; those of the same model that older libraries ran stay."""
        return replace(self, rounds=(*self.rounds, new))

    def with_spec(self, spec: str, libraries: tuple[Library, ...], kinds: tuple[ModelKind, ...]) -> Self:
        others = tuple(each for each in self.libraries if each.spec != spec)
        models = tuple(each for each in self.kinds if each.spec != spec)
        return replace(self, libraries=(*others, *libraries), kinds=(*models, *kinds))
