"""What verification measures and how it judges, with the few statistics that it needs. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class Verdict(StrEnum):
    """What a measurement says against its budget or tolerance."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """Of a budget: the difference lies inside the spread of the run itself, which is no failure. Of a package: the
    comparison with the full runtime compared nothing that could have differed."""
    NOT_JUDGED = "not judged"
    """No budget was given, the device cannot measure what it is about, or an output can show nothing."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Samples of one quantity in one run, summed up. All values in the quantity's own unit."""

    count: int
    minimum: float
    p50: float
    p90: float
    p99: float
    maximum: float


@dataclass(frozen=True, kw_only=True)
class CaseTiming:
    """Times of one case on one library, milliseconds: the first run apart, then the runs after warm-up.

    `total_ms` is input, inference and output together, as an application waits for them; `jitter_ms` is its 99th
    percentile less its median. `missed` runs took longer than `deadline_ms`, when the buildspec has one. `instructions`
    are those of an inference, None where the machine does not count them.
    """

    case: str
    first_run_ms: float
    input_ms: Distribution
    inference_ms: Distribution
    output_ms: Distribution
    total_ms: Distribution
    jitter_ms: float
    deadline_ms: float | None
    missed: int
    samples_ms: tuple[float, ...]
    instructions: Distribution | None = None


PeakSource = Literal["VmHWM", "ru_maxrss", "phys_footprint"]
"""Where the peak of resident memory was read: `/proc/self/status`, `getrusage`, or Apple's `task_info`.

Apple's footprint, which is what iOS ends an app for, leaves out clean pages of files: a library's code among them.
"""


@dataclass(frozen=True, kw_only=True)
class RunnerResult:
    """One library with one model, over all rounds of one verification.

    Resident memory once the model is loaded, at most (loading included), and at most after loading was over. The first
    is None where there is no `/proc`, the last also where the kernel does not reset its high-water mark
    (`/proc/self/clear_refs`). `peak_source` says where the peak was read; `warmup` runs of each case came before those
    that were timed.
    """

    library: Literal["ours", "baseline"]
    model: str
    runtime_version: str
    warmup: int
    load_ms: Distribution
    loaded_rss_bytes: Distribution | None
    peak_rss_bytes: Distribution
    inference_peak_rss_bytes: Distribution | None
    peak_source: PeakSource
    cases: tuple[CaseTiming, ...]


Unit = Literal["bytes", "ms", "runs", "instructions"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One line of the report's table: ours, the baseline's, their ratio, the budget and the verdict.

    `case` is the one that stands worst, empty for what is not measured case by case. `budget` is in the line's unit
    or, when `budget_is_ratio`, a ratio; `spread` is the relative half-width of the ratio within the run. `reason` says
    why a budget that was given is not judged. The unit `runs` counts runs of one process, `instructions` those that a
    processor executed.
    """

    measure: str
    model: str
    case: str = ""
    unit: Unit
    ours: float
    baseline: float | None
    ratio: float | None
    spread: float | None
    budget: float | None
    budget_is_ratio: bool
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class OutputParity:
    """One output of one case against the full runtime's, optimizations off.

    `difference` is that of the element which uses most of what it is `allowed`, `max_absolute` and `max_relative` are
    the largest of any element, `rms` is the root mean square of the differences as a share of the reference's. None
    stands for what says nothing of an output: `rms` and `cosine` of one without numbers or of zeros alone,
    `argmax_agreement` of what is no distribution over classes, `iou` of what holds no boxes, `ulps` (the most units in
    the last place) of other types than float16 and bfloat16. `nan_mismatch` counts the elements that are not a number
    on one side alone; None where no elements were compared. `same_graph` and `same_graph_allowed` are `difference` and
    `allowed` against the full runtime with the same converted model; None where that was not compared. Where products
    round to 8 bits in every run, each may be a distance from what they give without (`as_near_to_floats`).
    """

    model: str
    case: str
    output: str
    element_type: str
    shape: tuple[int, ...]
    difference: float = 0.0
    allowed: float = 0.0
    max_absolute: float = 0.0
    max_relative: float = 0.0
    rms: float | None = None
    rms_allowed: float | None = None
    ulps: float | None = None
    cosine: float | None = None
    argmax_agreement: float | None = None
    iou: float | None = None
    nan_mismatch: int | None = None
    same_graph: float | None = None
    same_graph_allowed: float | None = None
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class UnreadTable:
    """A table (rows, keys, leaves) of which cases leave entries `unread`; None if what they look up is unknown."""

    place: str
    entries: int
    unread: int | None

    def __str__(self) -> str:
        if self.unread is None:
            return f"which of {self.entries:,} entries of {self.place} are looked up cannot be observed: not proved"
        were = "was" if self.unread == 1 else "were"
        return f"{self.unread:,} of {self.entries:,} entries of {self.place} {were} never looked up: not proved"


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How many of a model's nodes its cases execute, in the full runtime with optimizations off.

    Constants are no nodes. `idle` names the bodies of If, Loop, Scan and functions that no case enters, `tables` those
    of which some entries are never looked up.
    """

    nodes: int
    executed: int
    idle: tuple[str, ...] = ()
    tables: tuple[UnreadTable, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Gate:
    """A property that a library must have, and whether it has it."""

    name: str
    verdict: Verdict
    detail: str


DeviceKind = Literal["physical", "emulator", "simulator", "vm", "user-emulation"]


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """The machine on which a verification ran, as it describes itself; what is not known is empty or None.

    `abi` is in the words of its system (`arm64-v8a`, `aarch64`), `os_version` its name and version (`Android 14`,
    `Linux 6.12`). `cores` is how many there are, `pinned_cores` the numbers of those that runs were kept on, empty for
    all. Thermal states are Android's, from 0 (none) to 6 (shutdown). `memory_meaningful` and `time_meaningful` say
    whether what a process takes there says anything of a real device: an emulator's does not.
    """

    system: str
    machine: str
    cpu: str
    cores: int
    pinned_cores: tuple[int, ...] = ()
    memory_bytes: int
    kind: DeviceKind | None = None
    model: str = ""
    soc: str = ""
    abi: str = ""
    os_version: str = ""
    api_level: int | None = None
    fingerprint: str = ""
    page_bytes: int | None = None
    cpu_features: tuple[str, ...] = ()
    thermal_before: int | None = None
    thermal_after: int | None = None
    battery_celsius: float | None = None
    memory_meaningful: bool = True
    time_meaningful: bool = True


@dataclass(frozen=True, kw_only=True)
class LeastMemory:
    """The least memory of a machine in which a model loads and runs, kernel and files included, found by halving."""

    model: str
    enough_mib: int
    too_little_mib: int
    usable_bytes: int
    tried: tuple[tuple[int, str], ...]


ERROR: Final = 0.05
"""How likely the true median may lie below an interval, and how likely above it."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return a quantile of sorted samples, interpolated linearly between the two nearest."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def median(samples: Iterable[float]) -> float:
    """Return the median of at least one sample."""
    return quantile(sorted(samples), 0.5)


def distribution(samples: Iterable[float]) -> Distribution:
    """Sum up at least one sample."""
    ordered = sorted(samples)
    return Distribution(
        count=len(ordered),
        minimum=ordered[0],
        p50=quantile(ordered, 0.5),
        p90=quantile(ordered, 0.9),
        p99=quantile(ordered, 0.99),
        maximum=ordered[-1],
    )


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A median and the interval that holds the true one, as sure as `median_interval` was asked to be."""

    low: float
    median: float
    high: float

    @property
    def spread(self) -> float:
        """Relative half-width."""
        return (self.high - self.low) / 2 / self.median if self.median > 0 else 0.0


def median_interval(samples: Iterable[float], *, below: float = ERROR, above: float = ERROR) -> Interval:
    """Return the order-statistic interval of the median, which assumes nothing about how samples are distributed.

    The true median lies under it with a chance of at most `below`, and over it with one of at most `above`. Samples too
    few to be that sure give all of them as the interval: below five, with the default.
    """
    ordered = sorted(samples)
    low, high = (_left_out(len(ordered), error) for error in (below, above))
    return Interval(low=ordered[low], median=quantile(ordered, 0.5), high=ordered[-1 - high])


def _left_out(count: int, error: float) -> int:
    """Return how many samples at an end the interval can leave out (binomial with one half, one tail)."""
    tail, left_out = 0, 0
    for number in range(count // 2):
        tail += math.comb(count, number)
        if tail / 2**count > error:
            break
        left_out = number
    return left_out
