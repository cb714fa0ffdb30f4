"""`invoke devices`: what a library can be verified on."""

import json as json_module

from invoke.context import Context
from invoke.tasks import task
from rich.table import Column, Table
from rich.text import Text

from ortrim.console import printable
from ortrim.core.serialization import to_data
from ortrim.tasks.boundary import boundary
from ortrim.tasks.options import help_for
from ortrim.verify.devices.listed_device import ListedDevice
from ortrim.verify.devices.listing import fetch_machines, list_devices


@task(help={"fetch": "fetch the kernel and the libraries of emulated machines first", **help_for("json")})
def devices(_context: Context, fetch: bool = False, json: bool = False) -> None:
    """Show devices here, and what can be measured on each."""
    with boundary(json_mode=json) as console:
        if fetch:
            with console.step("fetch emulated machines") as step:
                fetch_machines(step.note)
        found = list_devices()
        if json:
            console.result(json_module.dumps([to_data(device) for device in found], indent=2))
        else:
            console.render(_table(found))


def _table(found: tuple[ListedDevice, ...]) -> Table:
    rest = (Column(heading, overflow="fold") for heading in ("targets", "measures", "found", "what to do"))
    table = Table("", Column("device", no_wrap=True), *rest, box=None, padding=(0, 1))
    for device in found:
        targets = ", ".join(device.targets) or "the device says"
        said = printable(device.problem or device.found)
        table.add_row(_mark(device), printable(device.name), targets, _measures(device), said, printable(device.remedy))
    return table


def _measures(device: ListedDevice) -> str:
    named = (("parity", True), ("memory", device.memory), ("time", device.time))
    return ", ".join(name for name, measured in named if measured)


def _mark(device: ListedDevice) -> Text:
    return Text("absent", "yellow") if device.problem else Text("ok", "green")
