"""Simulators of iPhones on a Mac. What runs there is a program of the Mac's, so that its numbers are a Mac's."""

import dataclasses
import re
import secrets
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from ortrim.base.command import Completed, last_lines
from ortrim.base.files import storage_errors
from ortrim.base.json import read_json
from ortrim.base.tools import Program, causes, diagnose, find_xcrun
from ortrim.devices import kinds
from ortrim.devices.device import ProgramDevice, not_startable
from ortrim.devices.host import absolute, kill_with, mac_facts
from ortrim.devices.remote import signalled, text_of
from ortrim.errors import Diagnostic, ToolError, UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest, read_output, runner_words, within_limits

SIMCTL: Final = kinds.SIMCTL.name
SIGNAL: Final = re.compile(r"^Child process terminated with signal (\d{1,2})\b", re.MULTILINE)
FAULTS: Final = causes("simctl")
NOT_STARTED: Final = "An error was encountered processing the command"


def simctl_error(done: Completed, where: str) -> Diagnostic:
    """Return the diagnostic of a command of simctl's that failed: `device-lost`, or `simulator-trouble`."""
    said = (done.stderr or done.stdout).strip()
    why = last_lines(said, 4) or f"exit code {done.returncode}"
    hint = "try it by hand: xcrun simctl list devices"
    unknown = VerifyError("simulator-trouble", "simctl failed", where=where, why=why, hint=hint)
    return diagnose(said, FAULTS, where, why, kind=VerifyError) or unknown


def ended(done: Completed, report: str, where: str) -> Completed:
    """Return how a program that was spawned ended, with its report."""
    if found := SIGNAL.search(done.stderr):
        return replace(done, returncode=-int(found[1]), stdout=report)
    if not report and done.returncode != 0:
        if diagnose(done.stderr, FAULTS, where):
            raise simctl_error(done, where)
        if NOT_STARTED in done.stderr:
            raise not_startable(where, last_lines(done.stderr, 4))
    return replace(done, returncode=signalled(done.returncode), stdout=report or done.stdout)


BOOTED: Final = "Booted"
PREFIX: Final = "com.apple.CoreSimulator.SimRuntime."
IOS: Final = re.compile(r"iOS-(\d{1,4}(?:-\d{1,4})*)")
RUNTIME_HINT: Final = "run: xcodebuild -downloadPlatform iOS"
LIST_HINT: Final = "this lists them: xcrun simctl list devices available"


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Type(_Answer):
    identifier: str
    name: str = ""
    product_family: str = Field(default="", alias="productFamily")


class _Runtime(_Answer):
    identifier: str
    available: bool = Field(default=False, alias="isAvailable")
    architectures: tuple[str, ...] = Field(default=(), alias="supportedArchitectures")
    types: tuple[_Type, ...] = Field(default=(), alias="supportedDeviceTypes")


class _Device(_Answer):
    udid: str = Field(pattern=r"^[0-9A-Za-z][0-9A-Za-z-]{0,63}$")
    name: str
    state: str
    available: bool = Field(default=False, alias="isAvailable")


class _Listing(_Answer):
    devices: dict[str, tuple[_Device, ...]]
    runtimes: tuple[_Runtime, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A simulated iPhone or iPad. `version` is iOS's.

    One without a `udid` is not there: it can be made, of the `device_type` and the `runtime` with these identifiers.
    """

    udid: str
    name: str
    version: tuple[int, ...]
    booted: bool = False
    device_type: str = ""
    runtime: str = ""

    @property
    def system(self) -> str:
        """Name and version of its system: `iOS 18.2`."""
        return f"iOS {'.'.join(map(str, self.version))}"


def read_simulators(printed: str, architecture: str) -> tuple[Simulator, ...]:
    """Return what `simctl list -j` printed, as far as it runs programs for Apple's word for an architecture.

    The best comes first: a booted one, then an iPhone, each of the newest iOS. Last comes one that can be made.
    """
    damaged = VerifyError(
        "simulator-trouble", "simctl did not print a list of simulators", where=SIMCTL, hint=LIST_HINT
    )
    listing = read_json(_Listing, printed, damaged)
    # Older Xcodes do not say which architectures theirs run.
    runtimes = {
        runtime.identifier: runtime
        for runtime in listing.runtimes
        if runtime.available and _version(runtime.identifier)
        if architecture in (runtime.architectures or (architecture,))
    }
    found = [
        Simulator(udid=device.udid, name=device.name, version=_version(runtime), booted=device.state == BOOTED)
        for runtime, devices in listing.devices.items()
        for device in devices
        if runtime in runtimes and device.available
    ]
    found.sort(
        key=lambda each: (not each.booted, "iPhone" not in each.name, [-part for part in each.version], each.name)
    )
    models = (
        Simulator(udid="", name=kind.name, version=_version(name), device_type=kind.identifier, runtime=name)
        for name, runtime in sorted(runtimes.items(), key=lambda each: _version(each[0]), reverse=True)
        for kind in runtime.types
        if kind.product_family == "iPhone" or kind.name.startswith("iPhone")
    )
    return (*found, *islice(models, 1))


def choose_simulator(found: Sequence[Simulator], name: str) -> Simulator:
    """Return the simulator of a name or UDID, the best without one; of several of one name the newest counts.

    Raises `UsageError` `unknown-device`, `VerifyError` `no-simulator`.
    """
    if name:
        there = [each for each in found if each.udid]
        named = [each for each in there if name in {each.udid, each.name}]
        if not named:
            near = ", ".join(dict.fromkeys(each.name for each in there[:6]))
            hint = f"there are: {near}; {LIST_HINT}" if near else RUNTIME_HINT
            raise UsageError("unknown-device", f"there is no simulator {name!r}", where=f"{SIMCTL}:{name}", hint=hint)
        return min(named, key=lambda each: not each.booted)
    if not found:
        what = "Xcode has no iOS for simulators that runs this target"
        raise VerifyError("no-simulator", what, where=SIMCTL, hint=RUNTIME_HINT)
    return found[0]


def _version(runtime: str) -> tuple[int, ...]:
    """Return the version in an identifier of iOS; empty for another system's."""
    found = IOS.fullmatch(runtime.removeprefix(PREFIX))
    return tuple(map(int, found[1].split("-"))) if found else ()


LIST_SECONDS: Final = 120.0
"""The first answer after an update of Xcode comes late."""
BOOT_SECONDS: Final = 900.0
"""A new simulator migrates its data first, which can take minutes."""
SHUTDOWN_SECONDS: Final = 120.0
MARK_BYTES: Final = 8


class SimulatorDevice(ProgramDevice):
    """Runs the runner in a booted simulator, which shares this Mac's files.

    `close` shuts it down when it was not booted before this, and deletes it when it was `made` for this.
    """

    memory_meaningful = kinds.SIMCTL.memory
    time_meaningful = kinds.SIMCTL.time
    caveat = "is a Mac's number, not a phone's"

    def __init__(self, xcrun: Program, simulator: Simulator, *, made: bool) -> None:
        self.name = f"{SIMCTL}:{simulator.name}"
        self._xcrun = xcrun
        self._simulator = simulator
        self._booted, self._made = not simulator.booted, made

    def facts(self) -> HostFacts:
        """Describe the Mac, and which phone it simulates."""
        mac = mac_facts()
        return dataclasses.replace(
            mac,
            kind="simulator",
            model=f"{self._simulator.name}, simulated on {mac.model or 'a Mac'}",
            cpu=f"{mac.cpu} of the Mac ({mac.os_version})",
            os_version=self._simulator.system,
            fingerprint="",
            memory_meaningful=False,
            time_meaningful=False,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once."""
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as place:
            report = Path(place) / f"{secrets.token_hex(MARK_BYTES)}.json"
            done = self._spawned(request, report)
            finished = ended(done, text_of(report), self.name)
        return read_output(finished, request)

    def close(self) -> None:
        """Leave the simulator as it was found."""
        for asked, verb in ((self._booted, "shutdown"), (self._made, "delete")):
            if asked:
                with suppress(Diagnostic):
                    self._xcrun.run(SIMCTL, verb, self._simulator.udid, timeout_seconds=SHUTDOWN_SECONDS)
        self._booted = self._made = False

    def _spawned(self, request: RunRequest, report: Path) -> Completed:
        """Run the runner to its end. Whatever else happens it is ended too, which outlives `simctl` otherwise."""
        words = (*runner_words(absolute(request)), "--json", str(report))
        limit = request.repetition.timeout_seconds
        with within_limits(request):
            try:
                return self._xcrun.run(SIMCTL, "spawn", self._simulator.udid, *words, timeout_seconds=limit)
            except BaseException:  # its limits, and Ctrl-C
                kill_with(str(report))
                raise


def list_simulators(xcrun: Program, architecture: str) -> tuple[Simulator, ...]:
    """Return the simulators here as `read_simulators` does."""
    done = xcrun.run(SIMCTL, "list", "-j", timeout_seconds=LIST_SECONDS)
    if done.returncode != 0:
        raise simctl_error(done, SIMCTL)
    return read_simulators(done.stdout, architecture)


def open_simulator(
    name: str, architecture: str, *, xcrun: Program | None = None, announce: Callable[[str], None] = lambda _: None
) -> SimulatorDevice:
    """Return the simulator of a name or UDID, or the best one, booted; one is made where there is none.

    Making or booting one is reported to `announce`.
    """
    xcrun = xcrun or find_xcrun(SIMCTL)
    chosen = choose_simulator(list_simulators(xcrun, architecture), name)
    simulator = chosen if chosen.udid else _made(xcrun, chosen, announce)
    device = SimulatorDevice(xcrun, simulator, made=not chosen.udid)
    try:
        if not simulator.booted:
            announce(f"booting {simulator.name} ({simulator.system})")
        done = xcrun.run(SIMCTL, "bootstatus", simulator.udid, "-b", timeout_seconds=BOOT_SECONDS)
        if done.returncode != 0:
            raise simctl_error(done, device.name)  # noqa: TRY301 - it is closed then, too
    except ToolError as error:
        device.close()
        if error.code != "tool-timeout":
            raise
        what, hint = "the simulator did not boot", f"try it by hand: xcrun simctl bootstatus {simulator.udid} -b"
        raise VerifyError("simulator-trouble", what, where=device.name, why=error.what, hint=hint) from error
    except BaseException:
        device.close()
        raise
    return device


def _made(xcrun: Program, model: Simulator, announce: Callable[[str], None]) -> Simulator:
    """Make a simulator under a name of our own."""
    name = f"ortrim-{secrets.token_hex(MARK_BYTES)}"
    announce(f"making a simulator: {model.name}")
    done = xcrun.run(SIMCTL, "create", name, model.device_type, model.runtime, timeout_seconds=LIST_SECONDS)
    udid = done.stdout.strip()
    if done.returncode != 0 or not udid.replace("-", "").isalnum():
        raise simctl_error(done, SIMCTL)
    return replace(model, udid=udid)


def simulators_text(architecture: str) -> str:
    """Say which simulators run an architecture."""
    found = list_simulators(find_xcrun(SIMCTL), architecture)
    if not found:
        raise VerifyError("no-simulator", "has no iOS for simulators", where="Xcode", hint=RUNTIME_HINT)
    first, more = found[0], sum(bool(each.udid) for each in found[1:])
    if not first.udid:
        return f"none yet; {first.name} would be made"
    return f"{first.name} ({first.system})" + (f" and {more} more" if more else "")
