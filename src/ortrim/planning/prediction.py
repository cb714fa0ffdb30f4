"""How large a target's library will be and how long compiling takes, said before anything is compiled."""

import hashlib
import math
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from ortrim.base.cache import cache_folder, is_kept
from ortrim.base.console import counted, duration_text
from ortrim.base.files import shipped_folder, storage_errors, write_atomically
from ortrim.base.json import from_json, to_canonical_json, to_data, to_json
from ortrim.buildspec.problems import CONFIG
from ortrim.compiling.plan import BuildJob, JobResult, PlannedTarget, digest
from ortrim.compiling.workspace import choose_parallelism, finished_build, result_of
from ortrim.errors import PlanError, StorageError
from ortrim.models.operators import parse_config
from ortrim.planning.request import Request
from ortrim.platforms import platform_of

if TYPE_CHECKING:
    from ortrim.planning.planned import Planned

TABLE_ERROR: Final = 0.1
"""How far a library may be from what the table says, as a share; docs/explanation/how-it-measures.md has what was."""
UNKNOWN_ERROR: Final = 0.25
"""The same for int8 models, of which one was measured, for libraries with execution providers, of which two were, and
for targets, versions and compilers that none was."""
BUILD_ERROR: Final = 0.01
"""How far a library may be from a build here with the same operators, whose types and opsets may differ."""
OPERATORS_ERROR: Final = 0.5
"""And from one with others, as a share of what the table says of these."""
FIXED_UNITS: Final = 15
"""Configuring and linking take as long as so many compilations; so many are anew in each build, whatever it has."""
FIRST_UNITS: Final = 185
"""What a first build compiles besides its operators' kernels."""
UNIT_SECONDS: Final = 1.0
"""What a compilation takes of one core, by the clean builds of benchmarks/results/build-time.md."""
FASTER, SLOWER = 0.5, 2.0
"""By what factors times differ from what is expected: by machines and, on this one, by what else begins to run."""


@checked_dataclass(frozen=True, kw_only=True, config=CONFIG)
class BuiltHere:
    """A build that was compiled on this machine: its operators (`ai.onnx:Conv`), size, time, and files compiled."""

    operators: tuple[str, ...]
    library_bytes: Annotated[int, Field(gt=0)]
    seconds: Annotated[float, Field(ge=0)]
    compiled: Annotated[int, Field(ge=0)]


@checked_dataclass(frozen=True, kw_only=True, config=CONFIG)
class SizeTable:
    """What is known of libraries: bytes of the demo's kind without any operator, and of each operator's kernels.

    `quantized` is what libraries of int8 operators have once, `other` is an operator that was never measured, and
    `providers` is what execution providers bring. The rest are factors for libraries of other kinds.
    """

    base: int
    quantized: int
    other: int
    exceptions: float
    profiles: dict[str, float]
    targets: dict[str, float]
    versions: dict[str, float]
    providers: dict[str, int]
    operators: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What is expected of a library in bytes, from `least` to `most`, and of compiling it in seconds.

    `builds` are those of this machine that it rests on, 0 when it is ortrim's table. `seconds` is None when this
    machine compiles nothing; a library that `is_built` is known.
    """

    target: str
    least: int
    most: int
    builds: int
    seconds: tuple[float, float] | None = None
    is_built: bool = False

    @property
    def size_text(self) -> str:
        """The library's size in words, no more precise than it is, and what that rests on."""
        least, most = f"{self.least / 1e6:.2f}", f"{self.most / 1e6:.2f}"
        if self.is_built:
            return f"{least} MB, built before"
        size = f"about {least} MB" if least == most else f"about {least} to {most} MB"
        source = f"{counted(self.builds, 'build')} here" if self.builds else "ortrim's own table"
        return f"{size}, from {source}"

    @property
    def text(self) -> str:
        """The prediction as one line."""
        line = f"{self.target}: a library of {self.size_text}"
        return f"{line}; compiling takes {' to '.join(map(_rounded, self.seconds))}" if self.seconds else line


def remember(job: BuildJob, result: JobResult, warn: Callable[[str], None]) -> None:
    """Keep what a build came to, for later predictions; what hinders that is a warning."""
    used = result.compiler_cache
    built = BuiltHere(
        operators=tuple(sorted(_operators(job))),
        library_bytes=result.library.stat().st_size,
        seconds=result.seconds,
        compiled=used.requests - used.hits if used else FIRST_UNITS + len(_operators(job)),
    )
    try:
        write_atomically(cache_folder("predictions") / _kind(job) / f"{digest(job)[:20]}.json", to_json(built))
    except StorageError as error:
        warn(f"this build is not kept for predictions: {error.where}: {error.what}")


def predictions(targets: Iterable[PlannedTarget], request: Request) -> tuple[Prediction, ...]:
    """Return what is expected of each target's library."""
    return tuple(_prediction(target.job, request) for target in targets)


def _prediction(job: BuildJob, request: Request) -> Prediction:
    identifier, done = job.target.identifier, finished_build(job)
    if is_kept(done):
        known_size = result_of(done).library.stat().st_size
        return Prediction(target=identifier, least=known_size, most=known_size, builds=1, is_built=True)
    own, known = _operators(job), tuple(_built_here(job))
    factor, sure = _factor(job)
    if known:
        size, error = _from_builds(own, known, factor)
    else:
        brought = sum(_table().providers.get(name, 0) for name in job.providers)
        size, error = factor * (_bytes_of(own) + brought), math.inf
    sure = sure and not job.providers and not is_quantized(own)
    error = min(error, size * (TABLE_ERROR if sure else UNKNOWN_ERROR))
    return Prediction(
        target=identifier,
        least=round(size - error),
        most=round(size + error),
        builds=len(known),
        seconds=_seconds(own, known, request),
    )


def require_reachable(planned: "Planned", targets: Iterable[tuple[PlannedTarget, Prediction]]) -> None:
    """Refuse budgets of libraries that are far below all that is expected of them; what is built already is judged.

    Far, since builds here may be of an older ortrim, whose libraries were larger.
    """
    for target, expected in targets:
        for budget, words in _library_budgets(planned, target) if not expected.is_built else ():
            if budget < (1 - TABLE_ERROR) * expected.least:
                what = f"{words} cannot be met"
                why = f"the library will have {expected.size_text}"
                smaller = "" if target.job.profile == "size" else "choose profile = 'size', "
                hint = f"raise the budget, {smaller}or leave operators out of the models, which invoke lint lists"
                raise PlanError("budget-unreachable", what, where=expected.target, why=why, hint=hint)


def _library_budgets(planned: "Planned", target: PlannedTarget) -> Iterator[tuple[float, str]]:
    budgets, models = target.budgets, planned.models
    if budgets.library_bytes:
        yield budgets.library_bytes, f"the budget library_bytes = {budgets.library_bytes:_}"
    if budgets.library_ratio:
        rules = platform_of(target.job.target)
        _, official = rules.baseline(target.job, models.runtime, models.pins.converter_requirements)
        if official.file_bytes:
            budget = budgets.library_ratio * official.file_bytes
            yield budget, f"the budget library_ratio = {budgets.library_ratio:g}, {budget / 1e6:.2f} MB,"


def _operators(job: BuildJob) -> frozenset[str]:
    return frozenset(f"{each.domain}:{each.name}" for each in parse_config(job.operator_config).operators)


def _kind(job: BuildJob) -> str:
    """Return the digest of what builds of one kind have in common: what was chosen for them, whatever the models."""
    system = (job.android, job.apple, job.providers)
    chosen = (job.build_options, job.exceptions, job.minimum_glibc, job.cpu, job.linkage, *system)
    parts = (job.target.identifier, job.ort_version, job.toolchain.kind, *map(to_data, chosen))
    return hashlib.sha256(to_canonical_json(parts).encode()).hexdigest()[:20]


def _built_here(job: BuildJob) -> Iterator[BuiltHere]:
    folder = cache_folder("predictions") / _kind(job)
    for file in sorted(folder.glob("*.json")):
        with storage_errors(file), suppress(ValidationError):
            yield from_json(BuiltHere, file.read_bytes())


def _from_builds(own: frozenset[str], known: Iterable[BuiltHere], factor: float) -> tuple[float, float]:
    """Return the size of the build here whose operators are the nearest, changed by the others, and its error."""

    def changed(build: BuiltHere) -> int:
        return _bytes_of(own ^ frozenset(build.operators)) - _table().base

    nearest = min(known, key=changed)
    size = nearest.library_bytes + factor * (_bytes_of(own) - _bytes_of(frozenset(nearest.operators)))
    return size, BUILD_ERROR * size + OPERATORS_ERROR * factor * changed(nearest)


def _seconds(own: frozenset[str], known: Collection[BuiltHere], request: Request) -> tuple[float, float] | None:
    """Return the least and the most that compiling is expected to take; None where nothing is compiled.

    What builds here compiled is in the compiler cache, and their pace is this machine's. A first build has the cores
    that other programs leave.
    """
    if request.elsewhere or not hasattr(os, "getloadavg"):
        return None
    if known:
        units = len(own.difference(*(build.operators for build in known))) + 2 * FIXED_UNITS
        seconds = units * median(each.seconds / (each.compiled + FIXED_UNITS) for each in known)
    else:
        jobs = choose_parallelism(request.jobs).jobs
        crowd = max(1.0, (os.getloadavg()[0] + jobs) / (os.cpu_count() or 1))
        seconds = UNIT_SECONDS * (FIRST_UNITS + len(own) + FIXED_UNITS) / jobs * crowd
    return FASTER * seconds, SLOWER * seconds


def _bytes_of(operators: frozenset[str]) -> int:
    table = _table()
    kernels = sum(table.operators.get(each, table.other) for each in operators)
    return table.base + kernels + is_quantized(operators) * table.quantized


def is_quantized(operators: Iterable[str]) -> bool:
    """Whether one of some operators brings MLAS's int8 kernels."""
    return any(":QLinear" in each or each.endswith(("Integer", ":QGemm", "ToFloat")) for each in operators)


def _factor(job: BuildJob) -> tuple[float, bool]:
    """Return how much larger libraries of a job's kind are than the table's, and whether each part was measured."""
    table = _table()
    version = ".".join(job.ort_version.split(".")[:2])
    factors = (
        table.profiles.get(job.profile),
        table.targets.get(job.target.identifier),
        table.versions.get(version),
        table.exceptions if job.exceptions else 1.0,
    )
    found = [each for each in factors if each is not None]
    product = 1.0
    for each in found:
        product *= each
    return product, len(found) == len(factors) and job.toolchain.kind == "zig"


@cache
def _table() -> SizeTable:
    text = (shipped_folder("prediction") / "sizes.toml").read_text(encoding="utf-8")
    return SizeTable(**tomllib.loads(text))


def _rounded(seconds: float) -> str:
    return duration_text(5 * max(1, round(seconds / 5))) if seconds < 90 else f"{round(seconds / 60)} min"
