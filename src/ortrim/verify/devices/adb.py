"""Devices that `adb` reaches: phones, tablets, emulators, and Linux machines that run `adbd`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.command import Completed
from ortrim.verify.devices.adb_client import AdbClient, find_adb
from ortrim.verify.devices.adb_errors import COPY_FAILED, LOST, NOT_PERMITTED, adb_error, device_error, known_error
from ortrim.verify.devices.adb_facts import SURVEY, THERMAL_SURVEY, adb_host, adb_thermal
from ortrim.verify.devices.adb_listing import AdbListing, choose, read_listing
from ortrim.verify.devices.base_folders import base_folder
from ortrim.verify.devices.cooling import CooledDevice
from ortrim.verify.devices.marked_run import run_marked
from ortrim.verify.devices.questions import Questions, asked_machine

BASE: Final = "/data/local/tmp"
"""Where Android lets the shell's user write, and run what it wrote. Our folder there is `ortrim-` and a number."""
LIST_SECONDS: Final = 30.0
FOLDER_SECONDS: Final = 30.0
STATE_SECONDS: Final = 10.0
COPY_SECONDS: Final = 300.0
"""For one file: 2 GB, the most that a model in ONNX format has, over USB 2 (some 30 MB/s) take about 70."""
QUESTIONS: Final = Questions(
    facts=SURVEY,
    read_facts=adb_host,
    heat=THERMAL_SURVEY,
    read_heat=adb_thermal,
    keeps_time=lambda answer: adb_host(answer).kind == "physical",
)


class AdbTransport:
    """A device by its serial number. All that it raises names it as `adb:SERIAL`."""

    def __init__(self, client: AdbClient, serial: str) -> None:
        self.serial = serial
        self._client = client

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Run a command, as `Transport` promises. Raises `VerifyError`, or `ToolError` when adb itself is gone."""
        return run_marked(
            words,
            lambda script, seconds: self._adb("shell", script, seconds=seconds),
            limit_seconds=timeout_seconds,
            name=f"adb:{self.serial}",
            explain=lambda printed: adb_error(printed, self.serial),
        )

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        """Copy files to the device, each by itself: adb copies symbolic links in a folder as links."""
        folders = sorted({str((PurePosixPath(folder) / name).parent) for name in files})
        done = self.execute(("mkdir", "-p", *folders), timeout_seconds=FOLDER_SECONDS)
        if done.returncode != 0:
            why = done.stderr.strip()
            raise known_error(done.stderr, self.serial) or device_error(NOT_PERMITTED, self.serial, why)
        for name, path in files.items():
            self._copy("push", path.resolve(), f"{folder}/{name}")

    def pull(self, folder: str, destination: Path) -> None:
        """Copy a folder's content; adb refuses names with slashes and makes no links."""
        self._copy("pull", f"{folder}/.", destination)

    def _copy(self, verb: str, source: Path | str, destination: Path | str) -> None:
        done = self._copied(verb, source, destination)
        if done.returncode == 0:
            return
        # adb reports a failed copy on standard output when that is not a terminal.
        printed = f"{done.stdout}\n{done.stderr}".strip()
        if error := known_error(printed, self.serial):
            raise error
        online = self._adb("get-state", seconds=STATE_SECONDS).returncode == 0
        raise device_error(COPY_FAILED if online else LOST, self.serial, printed)

    def _copied(self, verb: str, source: Path | str, destination: Path | str) -> Completed:
        try:
            return self._adb(verb, source, destination, seconds=COPY_SECONDS)
        except ToolError as error:
            if error.reference != "tool-timeout":
                raise
            why = f"adb {verb} did not end within {COPY_SECONDS:g} seconds"
            raise device_error(LOST, self.serial, why) from error

    def _adb(self, *words: str | Path, seconds: float) -> Completed:
        return self._client.run("-s", self.serial, *words, timeout_seconds=seconds)


def adb_devices(client: AdbClient) -> tuple[AdbListing, ...]:
    """Return what adb sees, whatever its state. Raises `ToolError`."""
    return read_listing(client.run("devices", "-l", timeout_seconds=LIST_SECONDS).stdout)


def open_adb(
    serial: str | None = None,
    *,
    client: AdbClient | None = None,
    base: str = "",
    cores: tuple[int, ...] = (),
    announce: Callable[[str], None] = lambda _: None,
) -> CooledDevice:
    """Return the device of a serial number, or the only one there is, ready to run on `cores` (all, when empty).

    `base` is the folder below which ours is made, without one that of `base_folder`.
    `announce` is told when it waits for the device to cool down. Raises `UsageError` `bad-folder`, and what `find_adb`,
    `choose` and `asked_machine` raise.
    """
    base = base or base_folder("adb", BASE)
    client = client or find_adb()
    transport = AdbTransport(client, choose(adb_devices(client), serial).serial)
    machine = asked_machine(transport, QUESTIONS, name=f"adb:{transport.serial}", base=base, cores=cores)
    return CooledDevice(machine, announce)
