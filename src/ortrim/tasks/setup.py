"""`invoke doctor`, `invoke schema`: what is here, and what a buildspec may say."""

import json as json_module

from invoke.context import Context
from invoke.exceptions import Exit
from invoke.tasks import task
from rich.table import Column, Table
from rich.text import Text

from ortrim.core.serialization import to_data
from ortrim.errors import ExitCode
from ortrim.spec.schema import buildspec_schema
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for
from ortrim.tools.doctor import examine
from ortrim.tools.findings import Finding


@task(help=help_for("json"))
def doctor(_context: Context, json: bool = False) -> None:
    """Show what is here, what is missing, and how to get it."""
    with boundary(json_mode=json) as console:
        findings = examine()
        if json:
            console.result(json_module.dumps([to_data(finding) for finding in findings], indent=2))
        else:
            console.render(_table(findings))
        if not all(finding.satisfied for finding in findings if finding.required):
            raise Exit(code=int(ExitCode.TOOL))


@task
def schema(_context: Context) -> None:
    """Print the JSON Schema of buildspecs."""
    with boundary() as console:
        console.result(json_module.dumps(buildspec_schema(), indent=2))


def _table(findings: tuple[Finding, ...]) -> Table:
    name, remedy = Column("what", no_wrap=True), Column("what to do", overflow="fold")
    table = Table("", name, "found", "needed for", remedy, box=None, padding=(0, 1))
    for finding in findings:
        found = finding.found or finding.problem
        table.add_row(_mark(finding), finding.name, found, finding.needed_for, finding.remedy)
    return table


def _mark(finding: Finding) -> Text:
    if finding.satisfied:
        return Text("ok", "green")
    return Text("missing", "red") if finding.required else Text("absent", "yellow")
