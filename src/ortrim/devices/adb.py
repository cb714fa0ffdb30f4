"""Devices that `adb` reaches: phones, tablets, emulators, and Linux machines that run `adbd`."""

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.base.command import Completed, last_lines
from ortrim.base.tools import Cause, Program, Tool, causes, diagnose, require, with_plain_words
from ortrim.devices import kinds
from ortrim.devices.facts import ANDROID_SURVEY, THERMAL_SURVEY, adb_host, adb_thermal
from ortrim.devices.remote import CooledDevice, Probes, base_folder, other_folder, probed_machine, run_marked
from ortrim.errors import Diagnostic, ToolError, UsageError, VerifyError

DEFAULT_PORT: Final = 5037
ANSWER_SECONDS: Final = 3.0
ANSWER: Final = re.compile(rb"OKAY[0-9a-fA-F]{4}([0-9a-fA-F]{1,8})")


def server_version(environment: Mapping[str, str]) -> int | None:
    """Return the protocol version of the running server that `adb` would use, None when there is none to ask.

    Whatever else listens there and does not answer as a server does counts as none: `adb` itself then says more.
    """
    try:
        with closing(_connected(environment)) as connection:
            connection.sendall(b"000chost:version")
            answer = b""
            while len(answer) < 64 and (part := connection.recv(64)):
                answer += part
    except OSError:
        return None
    found = ANSWER.fullmatch(answer)
    return int(found[1], 16) if found else None


def _connected(environment: Mapping[str, str]) -> socket.socket:
    """Connect as `adb` does."""
    address = environment.get("ADB_SERVER_SOCKET", "")
    kind, _, rest = address.partition(":")
    if kind == "localfilesystem":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.connect(rest)
        except OSError:
            connection.close()
            raise
        return connection
    host, _, port = rest.rpartition(":") if kind == "tcp" else ("", "", "")
    host = host or environment.get("ANDROID_ADB_SERVER_ADDRESS", "") or "localhost"
    port = port or environment.get("ANDROID_ADB_SERVER_PORT", "") or str(DEFAULT_PORT)
    if not port.isdecimal() or int(port) > 65535:
        raise OSError(f"not a port: {port}")
    return socket.create_connection((host, int(port)), ANSWER_SECONDS)


ADB: Final = Tool(name="adb", package="adb", minimum=(1, 0, 41))
"""1.0.41 is the protocol of every platform-tools since 2019; the last number is what client and server compare."""
START_SECONDS: Final = 30.0


def find_adb(environment: Mapping[str, str] | None = None) -> Program:
    """Return adb with a server that runs.

    `environment` replaces this process's own.
    """
    installed = require(ADB)
    client = Program(path=installed.path, environment=with_plain_words(environment))
    version, running = int(installed.version.split(".")[-1]), server_version(client.environment)
    if running not in {None, version}:
        what = f"the adb server that is running has version {running}, this adb has {version}"
        why = "adb would stop that server, and all connections that use it"
        hint = "put the adb of that server first on PATH, or stop the server: adb kill-server"
        raise ToolError("adb-server-mismatch", what, where=str(client.path), why=why, hint=hint)
    done = client.run("start-server", timeout_seconds=START_SECONDS)
    if done.returncode != 0:
        why = last_lines(done.stderr or done.stdout, 3)
        hint = "another program may hold the port; name a free one in ANDROID_ADB_SERVER_PORT"
        raise ToolError("adb-server-failed", "adb cannot start its server", where=kinds.ADB.name, why=why, hint=hint)
    return client


CAUSES: Final = causes("adb")
"""A device that was online when it was opened and is offline now has gone away, as has one that adb cannot reach."""
_BY_CODE: Final = {cause.code: cause for cause in (*CAUSES, *causes("adb-copy"))}
LOST, NOT_PERMITTED = _BY_CODE["device-lost"], _BY_CODE["device-not-permitted"]
COPY_FAILED: Final = _BY_CODE["copy-failed"]
"""For a reason that adb did not name, with the device still there."""


def device_error(fault: Cause, serial: str, why: str) -> Diagnostic:
    """Return a fault of a device as a diagnostic."""
    where = f"{kinds.ADB}:{serial}"
    return fault.diagnostic(where, why, VerifyError, folder=other_folder(where))


def state_error(state: str, serial: str) -> Diagnostic:
    """Return the diagnostic of a device that is not online, by its state in `adb devices`."""
    why = f"its state is: {state}"
    error = known_error(why, serial, why)
    assert error is not None
    return error


def known_error(printed: str, serial: str, why: str = "") -> Diagnostic | None:
    """Return the diagnostic of an adb command that failed, by what it printed; None when nothing fits."""
    where = f"{kinds.ADB}:{serial}"
    why = why or last_lines(printed, 4)
    return diagnose(printed, CAUSES, where, why, kind=VerifyError, folder=other_folder(where))


def adb_error(printed: str, serial: str) -> Diagnostic:
    """Return the diagnostic of a command whose end did not come back: `device-lost` unless adb says otherwise."""
    return known_error(printed, serial) or device_error(LOST, serial, last_lines(printed, 4))


ONLINE: Final = "device"
LISTED_STATES: Final = (
    "device|offline|unauthorized|authorizing|connecting|no permissions|bootloader|recovery|rescue|sideload|host|unknown"
)
LINE: Final = re.compile(rf"(?P<serial>\S.*?)\s+(?P<state>{LISTED_STATES})\b(?P<rest>.*)")
FIELD: Final = re.compile(r"(?:^|\s)(?P<key>usb|product|model|device|transport_id):(?P<value>\S+)")
CONNECT_HINT: Final = "connect one with USB debugging on, or: adb connect ADDRESS; then check: adb devices -l"


@dataclass(frozen=True, kw_only=True)
class AdbListing:
    """One line of `adb devices -l`. `model` is empty for a device that says nothing of itself yet."""

    serial: str
    state: str
    model: str

    @property
    def online(self) -> bool:
        """Whether commands can be run on it."""
        return self.state == ONLINE


def read_listing(printed: str) -> tuple[AdbListing, ...]:
    """Return the devices that `adb devices -l` printed; whatever else is printed among them is left out."""
    _, _, lines = f"\n{printed}".partition("\nList of devices attached")
    listings = []
    for found in (LINE.fullmatch(line.strip()) for line in lines.splitlines()[1:] if not line.startswith("*")):
        if found:
            fields = {field["key"]: field["value"] for field in FIELD.finditer(found["rest"])}
            # adb writes an underscore for what is not a letter or a digit.
            model = fields.get("model", "").replace("_", " ")
            listings.append(AdbListing(serial=found["serial"], state=found["state"], model=model))
    return tuple(listings)


def choose(devices: Sequence[AdbListing], serial: str | None) -> AdbListing:
    """Return the device of a serial number, or the only one there is.

    A single device that is online is taken even when there are others that are not.
    """
    online = [device for device in devices if device.online]
    if serial is not None:
        named = [device for device in devices if device.serial == serial]
        if not named:
            hint = f"adb sees: {', '.join(device.serial for device in devices)}" if devices else CONNECT_HINT
            raise UsageError("unknown-device", "adb sees no device of this serial number", where=serial, hint=hint)
    elif len(online) > 1:
        names = ", ".join(f"{kinds.ADB}:{device.serial}" for device in online)
        what = f"adb sees {len(online)} devices, and none was chosen"
        raise UsageError("several-devices", what, where=kinds.ADB.name, hint=f"name one or more of them: {names}")
    elif not devices:
        raise VerifyError("no-device", "adb sees no device", where=kinds.ADB.name, hint=CONNECT_HINT)
    else:
        named = [*online, *devices]
    if not named[0].online:
        raise state_error(named[0].state, named[0].serial)
    return named[0]


BASE: Final = "/data/local/tmp"
"""Where Android lets the shell's user write, and run what it wrote. Our folder there is `ortrim-` and a number."""
LIST_SECONDS: Final = 30.0
FOLDER_SECONDS: Final = 30.0
STATE_SECONDS: Final = 10.0
COPY_SECONDS: Final = 300.0
"""For one file: 2 GB, the most that a model in ONNX format has, over USB 2 (some 30 MB/s) take about 70."""
PROBES: Final = Probes(
    facts=ANDROID_SURVEY,
    read_facts=adb_host,
    heat=THERMAL_SURVEY,
    read_heat=adb_thermal,
    keeps_time=lambda answer: adb_host(answer).kind == "physical",
)


class AdbTransport:
    """A device by its serial number. All that it raises names it as `adb:SERIAL`."""

    def __init__(self, client: Program, serial: str) -> None:
        self.serial = serial
        self._client = client

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Run a command, as `Transport` promises."""
        return run_marked(
            words,
            lambda script, seconds: self._adb("shell", script, seconds=seconds),
            limit_seconds=timeout_seconds,
            name=f"{kinds.ADB}:{self.serial}",
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
        try:
            done = self._adb(verb, source, destination, seconds=COPY_SECONDS)
        except ToolError as error:
            if error.code != "tool-timeout":
                raise
            why = f"adb {verb} did not end within {COPY_SECONDS:g} seconds"
            raise device_error(LOST, self.serial, why) from error
        if done.returncode == 0:
            return
        # adb reports a failed copy on standard output when that is not a terminal.
        printed = f"{done.stdout}\n{done.stderr}".strip()
        if fault := known_error(printed, self.serial):
            raise fault
        online = self._adb("get-state", seconds=STATE_SECONDS).returncode == 0
        raise device_error(COPY_FAILED if online else LOST, self.serial, printed)

    def _adb(self, *words: str | Path, seconds: float) -> Completed:
        return self._client.run("-s", self.serial, *words, timeout_seconds=seconds)


def adb_devices(client: Program) -> tuple[AdbListing, ...]:
    """Return what adb sees, whatever its state."""
    return read_listing(client.run("devices", "-l", timeout_seconds=LIST_SECONDS).stdout)


def open_adb(
    serial: str | None = None,
    *,
    client: Program | None = None,
    base: str = "",
    cores: tuple[int, ...] = (),
    announce: Callable[[str], None] = lambda _: None,
) -> CooledDevice:
    """Return the device of a serial number, or the only one there is, ready to run on `cores` (all, when empty).

    `base` is the folder below which ours is made, without one that of `base_folder`. Waiting for the device to cool
    down is reported to `announce`.
    """
    base = base or base_folder(kinds.ADB.name, BASE)
    client = client or find_adb()
    transport = AdbTransport(client, choose(adb_devices(client), serial).serial)
    machine = probed_machine(transport, PROBES, name=f"{kinds.ADB}:{transport.serial}", base=base, cores=cores)
    return CooledDevice(machine, announce)
