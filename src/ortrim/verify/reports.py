"""The report of a target's verification, device by device: the content of `report.json`."""

from dataclasses import dataclass
from typing import Final, Literal

from ortrim.binaries.elf import LibraryFacts, LibrarySize
from ortrim.compiling.plan import CompiledUnits, CompilerCacheUse
from ortrim.parity import measurements

NOT_FOR_DEVICE: Final = "not-for-this-device"
"""Reference of the failure of a device that does not run what the target is for: a fault of neither."""


@dataclass(frozen=True, kw_only=True)
class DeviceFailure:
    """Why a device could not finish, or the library not run one `model` there: the fields of a `Diagnostic`."""

    code: str
    what: str
    where: str
    why: str
    hint: str
    exit_code: int
    model: str = ""


@dataclass(frozen=True, kw_only=True)
class Placement:
    """How many of a model's nodes each execution provider ran, by the names that the runtime has for them."""

    model: str
    nodes: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class DeviceReport:
    """What was found out on one device; `failure` says why there is nothing, when it could not finish.

    `failed_models` are those that the library does not run there: there is nothing else of them.

    `run_id` is a UUID, another for each verification. `started` is in UTC, as ISO 8601 has it, and `duration_s` the
    seconds until the device was closed, opening it included. `exit_code` and `signal` are those with which the runner
    ended that failed first: 0 when every run ended well, and both None when it was not the runner that failed.
    `provider_url` is where a farm shows the run. `log` is the device's own log, and `traces` are the profiles of
    single operators, one of each model, all as paths relative to the report's folder. `placements` are there where the
    library has execution providers beside the CPU's.
    """

    device: str
    run_id: str = ""
    started: str = ""
    duration_s: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    provider_url: str | None = None
    log: str | None = None
    host: measurements.HostFacts | None
    baseline: str
    comparisons: tuple[measurements.Comparison, ...]
    parity: tuple[measurements.OutputParity, ...]
    runs: tuple[measurements.RunnerResult, ...]
    least_memory: tuple[measurements.LeastMemory, ...] = ()
    traces: tuple[str, ...] = ()
    placements: tuple[Placement, ...] = ()
    failure: DeviceFailure | None = None
    failed_models: tuple[DeviceFailure, ...] = ()
    verdict: measurements.Verdict


@dataclass(frozen=True, kw_only=True)
class ReportedArtifact:
    """A file that was verified, by which a report can be compared with what is shipped.

    `build_id` is None for what is not a shared library, and for one that was linked without.
    """

    name: str
    size_bytes: int
    sha256: str
    build_id: str | None


@dataclass(frozen=True, kw_only=True)
class VerifiedModel:
    """A model that was verified: digests of the file as given, with which the baseline runs, and as converted.

    `coverage` is what its cases execute, None where it was run nowhere. `expect` is the buildspec's. `layout` is that
    of the converted one, empty if it runs everywhere.
    """

    name: str
    original_sha256: str
    sha256: str
    coverage: measurements.Coverage | None = None
    expect: Literal["empty"] | None = None
    layout: str = ""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a report is of."""

    schema: Literal["ortrim-report/11"] = "ortrim-report/11"
    name: str
    target: str
    ort_version: str
    ortrim_version: str
    plan_digest: str
    profile: str


@dataclass(frozen=True, kw_only=True)
class VerifyReport(Identity):
    """All that was measured of one target: the content of `report.json`.

    `artifacts` are the package, its library, the companions of that and the wheel; `parity_reference` names the runtime
    whose outputs ours are compared with.
    `damaged_cache` says what in the cache was not what had been written there, and was made anew.
    `comparisons` and `gates` are the library's and the package's; each device has its own comparisons of the models.
    """

    baseline: str
    package: str
    package_bytes: int
    artifacts: tuple[ReportedArtifact, ...]
    models: tuple[VerifiedModel, ...]
    parity_reference: str
    library: LibraryFacts
    size: LibrarySize
    baseline_size: LibrarySize
    comparisons: tuple[measurements.Comparison, ...]
    gates: tuple[measurements.Gate, ...]
    devices: tuple[DeviceReport, ...]
    build_seconds: float
    compiler_cache: CompilerCacheUse | None
    units: CompiledUnits | None = None
    left_out: tuple[str, ...] = ()
    damaged_cache: tuple[str, ...] = ()
    verdict: measurements.Verdict
