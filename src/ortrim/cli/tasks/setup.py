"""`invoke doctor`, `invoke schema`: what is here, and what a buildspec may say.

- `invoke devices`: what a library can be verified on.
"""

from invoke.exceptions import Exit
from rich.table import Column, Table
from rich.text import Text

from ortrim.base.console import Console, printable
from ortrim.base.json import to_data
from ortrim.base.tools import ToolFinding
from ortrim.buildspec.schema import buildspec_schema
from ortrim.cli.boundary import reworded
from ortrim.cli.task import task
from ortrim.devices.kinds import ListedDevice, fetch_machines, list_devices
from ortrim.errors import ExitCode
from ortrim.planning.doctor import examine
from ortrim.platforms import platform_of


@task()
def doctor(console: Console, json: bool = False) -> None:
    """Show which tools are missing, and how to get them."""
    findings = examine()
    if json:
        console.document([to_data(finding) for finding in findings])
    else:
        console.render(_table(findings))
    if not all(finding.satisfied for finding in findings if finding.required):
        raise Exit(code=int(ExitCode.TOOL))


@task()
def schema(console: Console) -> None:
    """Print the JSON Schema of buildspecs."""
    console.document(buildspec_schema())


def _table(findings: tuple[ToolFinding, ...]) -> Table:
    name, remedy = Column("what", no_wrap=True), Column("what to do", overflow="fold")
    table = Table("", name, "found", "needed for", remedy, box=None, padding=(0, 1))
    for finding in findings:
        found = finding.found or finding.problem
        table.add_row(_mark(finding), finding.name, *map(reworded, (found, finding.needed_for, finding.remedy)))
    return table


def _mark(finding: ToolFinding) -> Text:
    if finding.satisfied:
        return Text("ok", "green")
    return Text("missing", "red") if finding.required else Text("absent", "yellow")


@task(help={"fetch": "first download the kernel and the libraries of emulated machines"})
def devices(console: Console, fetch: bool = False, json: bool = False) -> None:
    """Show devices here, and what can be measured on each."""
    if fetch:
        with console.step("fetch emulated machines") as step:
            fetch_machines(step.note)
    found = list_devices(platform_of)
    if json:
        console.document([to_data(device) for device in found])
    else:
        console.render(_devices_table(found))


def _devices_table(found: tuple[ListedDevice, ...]) -> Table:
    rest = (Column(heading, overflow="fold") for heading in ("targets", "measures", "found", "what to do"))
    table = Table("", Column("device", no_wrap=True), *rest, box=None, padding=(0, 1))
    for device in found:
        targets = ", ".join(device.targets) or "the device says"
        said, remedy = map(printable, (device.problem or device.found, reworded(device.remedy)))
        table.add_row(_devices_mark(device), printable(device.name), targets, _measures(device), said, remedy)
    return table


def _measures(device: ListedDevice) -> str:
    named = (("parity", True), ("memory", device.memory), ("time", device.time))
    return ", ".join(name for name, measured in named if measured)


def _devices_mark(device: ListedDevice) -> Text:
    return Text("absent", "yellow") if device.problem else Text("ok", "green")
