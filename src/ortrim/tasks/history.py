"""`invoke history`: how builds changed over time."""

import json as json_module
from pathlib import Path
from typing import Final

from invoke.context import Context
from invoke.tasks import task

from ortrim.core.serialization import to_data
from ortrim.pipeline.history import history_of, write_history_page
from ortrim.report.history_terminal import history_tables
from ortrim.tasks.boundary import boundary
from ortrim.tasks.counts import count_option
from ortrim.tasks.options import help_for

LAST: Final = 15


@task(
    help={
        "spec": "a buildspec, or the name of one (default: all)",
        "target": "the identifier of a target (default: all)",
        "last": f"how many builds of each kind (default: {LAST}; with --json: all)",
        "html": "also write a page with plots to this file",
        **help_for("output", "json"),
    }
)
def history(
    _context: Context,
    spec: str | None = None,
    target: str | None = None,
    last: str = "",
    output: str = "artifacts",
    html: str = "",
    json: bool = False,
) -> None:
    """Show how builds changed in size, memory and latency."""
    with boundary(json_mode=json) as console:
        shown = count_option(last, "last")
        entries = history_of(Path(output), spec, target)
        if html:
            write_history_page(entries, Path(html))
        if json:
            data = {"builds": [to_data(entry) for entry in (entries[-shown:] if shown else entries)]}
            console.result(json_module.dumps(data, indent=2))
        else:
            console.render(history_tables(entries, shown or LAST))
