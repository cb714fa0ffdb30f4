"""What `invoke measure.build-options` does: builds each variant, and shows what each build option brings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from build_options.record import Outcome, Record, read_record, write_record
from build_options.report import markdown, table
from build_options.variants import Variant, variants, with_build_options
from ortrim.base.console import Console
from ortrim.base.files import require_writable, write_atomically
from ortrim.buildspec.build_options import PROFILE_NAMES, ProfileName
from ortrim.compiling.plan import BuildJob, digest
from ortrim.compiling.size.library import library_size
from ortrim.errors import BuildError, UsageError
from ortrim.pipeline.executors import executor_for
from ortrim.planning.planned import planned_for
from ortrim.planning.request import Request
from ortrim.platforms import platform_of

BOTTOM: Final[ProfileName] = "upstream"

Build = Callable[[Variant, BuildJob], Path]
"""Builds a job and returns its library. Raises `BuildError`."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to measure: a spec for a target, the build options in which a profile differs from upstream's recipe."""

    spec: Path
    target: str
    profile: ProfileName = "balanced"
    jobs: int | None = None
    output: Path = Path("artifacts/benchmarks")


def measure(wanted: Wanted, console: Console) -> Record:
    """Build all variants that were not built before, show the table, write it down, and return the record."""
    _check(wanted.profile)
    require_writable(wanted.output)
    request = Request(
        spec=wanted.spec, target=wanted.target, profile=wanted.profile, jobs=wanted.jobs, output=wanted.output
    )
    planned = planned_for(request, console, to_run=True)
    (target,) = planned.plan.targets

    def build(variant: Variant, job: BuildJob) -> Path:
        with console.step(f"build {planned.plan.spec_name}: {variant.words}") as step:
            return executor_for(planned, target, request, step).run(job).library

    name = f"build-options-{planned.plan.spec_name}-{target.job.target.identifier}-{wanted.profile}"
    try:
        return measure_variants(target.job, wanted.profile, wanted.output / f"{name}.json", build)
    finally:
        _show(wanted, name, console)


def measure_variants(job: BuildJob, top: ProfileName, path: Path, build: Build) -> Record:
    record = read_record(path)
    for variant in variants(BOTTOM, top, platform_of(job.target).KEPT):
        changed = with_build_options(job, variant.build_options, job.without_types)
        if record.built(variant.profile, variant.option, digest(changed)) is None:
            record = record.with_outcome(_outcome(variant, changed, build))
            write_record(path, record)
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


def _show(wanted: Wanted, name: str, console: Console) -> None:
    """Show what was built so far, and write it down beside the record."""
    outcomes = read_record(wanted.output / f"{name}.json").outcomes
    if outcomes:
        console.render(table(outcomes, BOTTOM, wanted.profile))
        report = wanted.output / f"{name}.md"
        write_atomically(report, markdown(outcomes, BOTTOM, wanted.profile))
        console.note(f"report: {report}")
