"""What each build option of a profile brings in bytes: on alone, and off alone, for one spec and one target."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

from records import read_record, table_of, write_results

from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.base.json import to_json
from ortrim.buildspec.build_options import PROFILE_NAMES, BuildOptions, ProfileName, applicable, profile_for
from ortrim.buildspec.targets import APPLE, Architecture
from ortrim.compiling.plan import BuildJob, digest
from ortrim.errors import BuildError, UsageError
from ortrim.models.operators import needs_wide_characters, parse_config
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import planned_for
from ortrim.planning.planner import with_arguments
from ortrim.planning.request import Request
from ortrim.platforms import platform_of
from ortrim.report.figures import NONE
from ortrim.report.table import Table
from ortrim.size.library import library_size


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one variant: the sizes of its library, or why there is none."""

    profile: str
    option: str
    key: str
    file_bytes: int = 0
    compressed_bytes: int = 0
    failure: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    schema: Literal["ortrim-build-options/1"] = "ortrim-build-options/1"
    outcomes: tuple[Outcome, ...] = ()

    def built(self, profile: str, option: str, key: str) -> Outcome | None:
        """Return what a variant came to when the same job was built before; a failure is tried again."""
        found = (each for each in self.outcomes if (each.profile, each.option, each.key) == (profile, option, key))
        return next((each for each in found if not each.failure), None)

    def with_outcome(self, new: Outcome) -> "Record":
        others = (each for each in self.outcomes if (each.profile, each.option) != (new.profile, new.option))
        return replace(self, outcomes=(*others, new))


NOT_OF_THE_CODE: Final = "precompiled_headers"
"""The build option that changes how long a build takes, and not what it makes."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One setting of the build options: the build option that is `pulled` or `off`, neither for a whole profile."""

    profile: str
    option: str
    build_options: BuildOptions

    @property
    def words(self) -> str:
        return f"{self.profile}, {self.option} the other way" if self.option else self.profile


def variants(bottom: ProfileName, top: ProfileName, kept: Mapping[str, Any]) -> Iterator[Variant]:
    """Yield each of two profiles whole, then with each build option in which they differ as the other has it."""
    low, high = profile_for(bottom, kept), profile_for(top, kept)
    names = [each.name for each in fields(BuildOptions) if each.name != NOT_OF_THE_CODE]
    differing = [name for name in names if getattr(low, name) != getattr(high, name)]
    for profile, base, other in ((bottom, low, high), (top, high, low)):
        yield Variant(profile=profile, option="", build_options=base)
        for name in differing:
            yield Variant(profile=profile, option=name, build_options=replace(base, **{name: getattr(other, name)}))


def with_build_options(job: BuildJob, build_options: BuildOptions, unused_types: tuple[str, ...]) -> BuildJob:
    pulled = applicable(
        build_options,
        toolchain=job.toolchain.kind,
        elf=job.target.system not in APPLE,
        x64=job.target.architecture is Architecture.X64,
        exceptions=job.exceptions,
        wide_characters=needs_wide_characters(parse_config(job.operator_config)),
        static=job.linkage == "static",
    )
    left_out = unused_types if pulled.type_reduction else ()
    return with_arguments(replace(job, build_options=pulled, without_types=left_out))


HEADINGS = ("build option", "on alone, bytes", "off alone, bytes")
Found = Mapping[tuple[str, str], Outcome]


def table(outcomes: Sequence[Outcome], bottom: str, top: str) -> Table:
    """Return the whole profiles' bytes, and for each build option what it saves on alone, and costs off alone."""
    found = {(each.profile, each.option): each for each in outcomes}
    names = dict.fromkeys(each.option for each in outcomes if each.option)
    rows = [(name, _change(found, bottom, name), _change(found, top, name)) for name in names]
    return table_of(HEADINGS, [("all", _whole(found, bottom), _whole(found, top)), *rows], texts=3)


def _whole(found: Found, profile: str) -> str:
    outcome = found.get((profile, ""))
    return NONE if outcome is None else outcome.failure or f"{outcome.file_bytes:,}"


def _change(found: Found, profile: str, option: str) -> str:
    outcome, whole = found.get((profile, option)), found.get((profile, ""))
    if outcome is None or outcome.failure:
        return outcome.failure if outcome else NONE
    return NONE if whole is None or whole.failure else f"{outcome.file_bytes - whole.file_bytes:+,}"


BOTTOM: Final[ProfileName] = "upstream"

Build = Callable[[Variant, BuildJob], Path]
"""Builds a job and returns its library. Raises `BuildError`."""


def measure(
    console: Console, *, spec: Path, target: str, profile: ProfileName, jobs: int | None, output: Path
) -> Record:
    """Build all variants that were not built before, show the table, write it down, and return the record."""
    _check(profile)
    require_writable(output)
    request = Request(spec=spec, target=target, profile=profile, jobs=jobs, output=output)
    planned = planned_for(request, console, to_run=True)
    (plan,) = planned.plan.targets

    def build(variant: Variant, job: BuildJob) -> Path:
        with console.step(f"build {planned.plan.spec_name}: {variant.words}") as step:
            return executor_for(planned, plan, request, step).run(job).library

    name = f"build-options-{planned.plan.spec_name}-{plan.identifier}-{profile}"
    path = output / f"{name}.json"
    try:
        return measure_variants(plan.job, profile, path, build)
    finally:
        record = read_record(path, Record())
        if record.outcomes:
            shown = table(record.outcomes, BOTTOM, profile)
            console.render(shown.terminal())
            write_results(output, name, record, shown.markdown() + "\n", console)


def measure_variants(job: BuildJob, top: ProfileName, path: Path, build: Build) -> Record:
    record = read_record(path, Record())
    for variant in variants(BOTTOM, top, platform_of(job.target).KEPT):
        changed = with_build_options(job, variant.build_options, job.without_types)
        if record.built(variant.profile, variant.option, digest(changed)) is None:
            record = record.with_outcome(_outcome(variant, changed, build))
            write_atomically(path, to_json(record))
    return record


def _check(profile: ProfileName) -> None:
    if profile == BOTTOM:
        others = ", ".join(name for name in PROFILE_NAMES if name != BOTTOM)
        what = f"profile {BOTTOM!r} has no build option on: it is what the others are measured against"
        raise UsageError("bad-option", what, where="--profile", hint=f"choose among: {others}")


def _outcome(variant: Variant, job: BuildJob, build: Build) -> Outcome:
    profile, option, key = variant.profile, variant.option, digest(job)
    try:
        size = library_size(build(variant, job), None)
    except BuildError as failure:
        why = next(iter(failure.why.splitlines()), "")
        reason = f"{failure.code}: {why or failure.what}"
        return Outcome(profile=profile, option=option, key=key, failure=reason)
    return Outcome(
        profile=profile,
        option=option,
        key=key,
        file_bytes=size.file_bytes,
        compressed_bytes=size.compressed_bytes,
    )
