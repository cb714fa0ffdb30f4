"""`invoke history`: how builds changed over time, which of them were accepted, and whether later ones are worse."""

from pathlib import Path
from typing import Any, Final

from ortrim.base.console import Console, counted, printable
from ortrim.base.files import write_atomically
from ortrim.base.json import to_data
from ortrim.buildspec.targets import with_identifiers
from ortrim.cli.boundary import as_data
from ortrim.cli.options import count_option, number_in
from ortrim.cli.task import task
from ortrim.errors import bad_option
from ortrim.pipeline.history import (
    Checks,
    accept_builds,
    builds_and_benches_of,
    check_builds,
    regression_of,
    write_accepted,
)
from ortrim.report.history import Allowed, Check
from ortrim.report.history_pages import bench_history_tables, check_tables, history_page, history_tables

LAST: Final = 15
DEFAULTS: Final = Allowed()
MOST_PERCENT: Final = 1000.0
LONGEST_NOTE: Final = 200
KIND: Final = {
    "spec": "a buildspec, or the name of one (default: all)",
    "target": "the identifier of a target (default: all)",
}


@task(
    help={
        **KIND,
        "last": f"how many builds of each spec, target and profile (default: {LAST}; with --json: all)",
        "html": "also write a page with charts to this file",
    },
)
def history(
    console: Console,
    spec: str | None = None,
    target: str | None = None,
    last: str = "",
    output: str = "artifacts",
    html: str = "",
    json: bool = False,
) -> None:
    """Show how builds changed in size, memory and latency."""
    shown = count_option(last, "last")
    entries, benches = builds_and_benches_of(Path(output), spec, with_identifiers(target or "", note=console.note))
    if html:
        write_atomically(Path(html), history_page(entries, benches))
    if json:
        found = {"builds": entries, "benches": benches}
        data = {name: [to_data(entry) for entry in each[-(shown or 0) :]] for name, each in found.items()}
        console.document(data)
        return
    if entries:
        console.render(history_tables(entries, shown or LAST))
    if benches:
        console.render(bench_history_tables(benches, shown or LAST))


@task(
    help={
        **KIND,
        "note": "a short note that says why",
        "to": "also write the accepted figures to this file, for a repository and check-build",
    },
)
def accept_build(
    console: Console,
    spec: str | None = None,
    target: str | None = None,
    note: str = "",
    to: str = "",
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Accept the latest builds as those to compare with."""
    if len(note) > LONGEST_NOTE or not note.isprintable():
        raise bad_option("note", note[:50], f"give at most {LONGEST_NOTE} printable characters")
    accepted = accept_builds(Path(output), spec, with_identifiers(target or "", note=console.note), note)
    if to:
        write_accepted(Path(output), accepted, Path(to))
    if json:
        console.document({"accepted": [to_data(entry) for entry in accepted]})
        return
    for entry in accepted:
        words = f"accepted: {entry.spec} {entry.target}, plan {entry.plan_digest[:12]}, verdict {entry.verdict}"
        console.note(printable(words))


@task(
    help={
        **KIND,
        "size": f"percent by which library and package may grow (default: {100 * DEFAULTS.size:g})",
        "memory": f"percent by which a model's peak memory may grow (default: {100 * DEFAULTS.memory:g})",
        "latency": f"percent by which load and median may grow, same machine (default: {100 * DEFAULTS.latency:g})",
        "instructions": f"percent by which instructions may grow (default: {100 * DEFAULTS.instructions:g})",
        "against": "a file that accept-build --to wrote (default: what was accepted here)",
    },
)
def check_build(
    console: Console,
    spec: str | None = None,
    target: str | None = None,
    size: str = "",
    memory: str = "",
    latency: str = "",
    instructions: str = "",
    against: str = "",
    output: str = "artifacts",
    json: bool = False,
) -> None:
    """Fail when the latest builds are worse than accepted."""
    allowed = Allowed(
        size=_share(size, "size", DEFAULTS.size),
        memory=_share(memory, "memory", DEFAULTS.memory),
        latency=_share(latency, "latency", DEFAULTS.latency),
        instructions=_share(instructions, "instructions", DEFAULTS.instructions),
    )
    identifier = with_identifiers(target or "", note=console.note)
    found = check_builds(Path(output), spec, identifier, allowed, Path(against) if against else None)
    failure = regression_of(found)
    if json:
        data = {
            "checks": [_check_data(each) for each in found.checks],
            "unaccepted": [{"spec": entry.spec, "target": entry.target} for entry in found.unaccepted],
            "errors": as_data(failure),
        }
        console.document(data)
    else:
        show_checks(found, console)
    if failure:
        raise failure


def _check_data(each: Check) -> dict[str, Any]:
    return {
        "spec": each.latest.spec,
        "target": each.latest.target,
        "plan_digest": each.latest.plan_digest,
        "accepted_plan_digest": each.accepted.entry.plan_digest,
        "accepted_at": each.accepted.accepted_at,
        "notes": list(each.notes),
        "lines": [to_data(line) for line in each.lines],
    }


def _share(word: str, option: str, default: float) -> float:
    """Return the part that a number of percent says."""
    percent = number_in(word) if word else 100 * default
    if 0 <= percent <= MOST_PERCENT:
        return percent / 100
    raise bad_option(option, word[:100], f"give a number of percent from 0 to {MOST_PERCENT:g}")


def show_checks(found: Checks, console: Console) -> None:
    """Show builds beside those that were accepted, and name those of which none was."""
    for each in found.checks:
        console.render(check_tables(each))
        console.note(f"{counted(len(each.regressions), 'regression')}")
    for entry in found.unaccepted:
        console.note(printable(f"{entry.spec} {entry.target}: no build was accepted yet: invoke accept-build"))
