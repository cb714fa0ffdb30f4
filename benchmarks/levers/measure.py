"""What `invoke measure.levers` does: builds each variant, and shows what each lever brings."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from levers.variants import Variant, variants, with_levers
from ortrim.binaries.sizes import library_size
from ortrim.console import Console
from ortrim.core.plan import PlannedTarget
from ortrim.pipeline.builders import executor_for
from ortrim.pipeline.converted import Request
from ortrim.pipeline.planned import Planned, make_planned
from ortrim.storage.files import require_writable, write_atomically

BOTTOM: Final = "upstream"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to measure: a spec for a target, the levers in which a profile differs from upstream's recipe."""

    spec: Path
    target: str
    profile: str = "balanced"
    jobs: int | None = None
    output: Path = Path("artifacts/benchmarks")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The size of a variant's library."""

    variant: Variant
    file_bytes: int
    compressed_bytes: int


def measure(wanted: Wanted, console: Console) -> tuple[Measured, ...]:
    """Build all variants, show the table, write it down, and return the sizes. Raises what building raises."""
    require_writable(wanted.output)
    request = Request(
        spec=wanted.spec, target=wanted.target, profile="balanced", jobs=wanted.jobs, output=wanted.output
    )
    planned = make_planned(request, console, to_run=True)
    (target,) = planned.plan.targets
    measured = tuple(_measured(each, planned, target, request, console) for each in variants(BOTTOM, wanted.profile))
    for table in tables(measured):
        console.render(table)
    report = wanted.output / f"levers-{planned.plan.spec_name}-{target.job.target.identifier}.md"
    write_atomically(report, markdown(measured))
    console.note(f"report: {report}")
    return measured


def _measured(
    variant: Variant, planned: Planned, target: PlannedTarget, request: Request, console: Console
) -> Measured:
    job = with_levers(target.job, variant.levers, target.job.without_types)
    words = f"{variant.profile}, {variant.lever} the other way" if variant.lever else variant.profile
    with console.step(f"build {planned.plan.spec_name}: {words}") as step:
        library = executor_for(planned, target, request, step).run(job).library
    size = library_size(library, None)
    return Measured(variant=variant, file_bytes=size.file_bytes, compressed_bytes=size.compressed_bytes)


def rows(measured: tuple[Measured, ...]) -> tuple[tuple[str, str, str], ...]:
    """Return for each lever its name and what pulling it alone saves, and what letting it alone go costs, in bytes."""
    found = {(each.variant.profile, each.variant.lever): each.file_bytes for each in measured}
    bottom, top = dict.fromkeys(each.variant.profile for each in measured)
    names = dict.fromkeys(each.variant.lever for each in measured if each.variant.lever)
    whole = ("all", f"{found[bottom, '']:,}", f"{found[top, '']:,}")
    return (
        whole,
        *((name, f"{found[bottom, name] - found[bottom, '']:+,}", f"{found[top, name] - found[top, '']:+,}")
          for name in names),
    )  # fmt: skip


def tables(measured: tuple[Measured, ...]) -> tuple[Table, ...]:
    """Return the table for the terminal."""
    table = Table("lever", "pulled alone", "let go alone")
    for row in rows(measured):
        table.add_row(*row)
    return (table,)


def markdown(measured: tuple[Measured, ...]) -> str:
    """Return the table as Markdown."""
    head = "| lever | pulled alone, bytes | let go alone, bytes |\n|---|---|---|\n"
    return head + "".join(f"| {' | '.join(row)} |\n" for row in rows(measured))
