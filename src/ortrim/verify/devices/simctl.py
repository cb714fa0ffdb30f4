"""Simulators of iPhones on a Mac. What runs there is a program of the Mac's, so that its numbers are a Mac's."""

import dataclasses
import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.core import measurements
from ortrim.errors import Diagnostic, ToolError, VerifyError
from ortrim.storage.files import storage_errors
from ortrim.tools.command import Completed
from ortrim.tools.xcrun import Xcrun, find_xcrun
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.local_run import absolute
from ortrim.verify.devices.mac import mac_facts
from ortrim.verify.devices.mac_processes import kill_with
from ortrim.verify.devices.pulled_files import text_of
from ortrim.verify.devices.run_errors import endless_output
from ortrim.verify.devices.simctl_errors import ended, simctl_error
from ortrim.verify.devices.simulator_listing import Model, Simulator, Simulators, choose_simulator, read_simulators
from ortrim.verify.runner_output import never_ended, place_of, read_output

SIMCTL: Final = "simctl"
LIST_SECONDS: Final = 120.0
"""The first answer after an update of Xcode comes late."""
BOOT_SECONDS: Final = 900.0
"""A new simulator migrates its data first, which can take minutes."""
SHUTDOWN_SECONDS: Final = 120.0
MARK_BYTES: Final = 8


class SimulatorDevice:
    """Runs the runner in a booted simulator, which shares this Mac's files.

    `close` shuts it down when it was `booted` for this, and deletes it when it was `made` for this.
    """

    memory_meaningful = False
    time_meaningful = False

    def __init__(self, xcrun: Xcrun, simulator: Simulator, *, booted: bool, made: bool) -> None:
        self.name = f"{SIMCTL}:{simulator.name}"
        self._xcrun = xcrun
        self._simulator = simulator
        self._booted = booted
        self._made = made

    def facts(self) -> measurements.Host:
        """Describe the Mac, and which phone it simulates. Raises `ToolError` when it cannot be asked."""
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
        """Run the runner once.

        Raises `VerifyError`: `runner-timeout`, `endless-output`, those of `ended` and of `read_output`.
        """
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as place:
            report = Path(place) / f"{secrets.token_hex(MARK_BYTES)}.json"
            done = self._spawned(request, report)
            finished = ended(done, text_of(report), self.name)
        return read_output(finished, request)

    def boot(self) -> None:
        """Boot the simulator and wait until it has. Raises `VerifyError` as `simctl_error` does, and `ToolError`."""
        done = self._xcrun.run(SIMCTL, "bootstatus", self._simulator.udid, "-b", timeout_seconds=BOOT_SECONDS)
        if done.returncode != 0:
            raise simctl_error(done, self.name)

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
        try:
            return self._xcrun.run(SIMCTL, "spawn", self._simulator.udid, *words, timeout_seconds=limit)
        except ToolError as error:
            kill_with(str(report))
            match error.reference:
                case "tool-timeout":
                    raise never_ended(request) from error
                case "tool-endless":
                    raise endless_output(place_of(request)) from error
                case _:
                    raise
        except BaseException:  # Ctrl-C
            kill_with(str(report))
            raise


def list_simulators(xcrun: Xcrun, architecture: str) -> Simulators:
    """Return the simulators here that run programs for Apple's word for an architecture.

    Raises `VerifyError` as `simctl_error` and `read_simulators` do, and `ToolError`.
    """
    done = xcrun.run(SIMCTL, "list", "-j", timeout_seconds=LIST_SECONDS)
    if done.returncode != 0:
        raise simctl_error(done, SIMCTL)
    return read_simulators(done.stdout, architecture)


def open_simulator(
    name: str, architecture: str, *, xcrun: Xcrun | None = None, announce: Callable[[str], None] = lambda _: None
) -> SimulatorDevice:
    """Return the simulator of a name or UDID, or the best one, booted; one is made where there is none.

    `announce` is told when one is made or booted. Raises what `find_xcrun`, `list_simulators`, `choose_simulator` and
    `SimulatorDevice.boot` raise; what was made or booted until then is gone again.
    """
    xcrun = xcrun or find_xcrun(SIMCTL)
    chosen = choose_simulator(list_simulators(xcrun, architecture), name)
    made = isinstance(chosen, Model)
    simulator = _made(xcrun, chosen, announce) if isinstance(chosen, Model) else chosen
    device = SimulatorDevice(xcrun, simulator, booted=not simulator.booted, made=made)
    try:
        if not simulator.booted:
            announce(f"booting {simulator.name} ({simulator.system})")
        device.boot()
    except ToolError as error:
        device.close()
        if error.reference != "tool-timeout":
            raise
        what, hint = "the simulator did not boot", f"try it by hand: xcrun simctl bootstatus {simulator.udid} -b"
        raise VerifyError("simulator-trouble", what, where=device.name, why=error.what, hint=hint) from error
    except BaseException:
        device.close()
        raise
    return device


def _made(xcrun: Xcrun, model: Model, announce: Callable[[str], None]) -> Simulator:
    """Make a simulator under a name of our own."""
    name = f"ortrim-{secrets.token_hex(MARK_BYTES)}"
    announce(f"making a simulator: {model.name}")
    done = xcrun.run(SIMCTL, "create", name, model.device_type, model.runtime, timeout_seconds=LIST_SECONDS)
    udid = done.stdout.strip()
    if done.returncode != 0 or not udid.replace("-", "").isalnum():
        raise simctl_error(done, SIMCTL)
    return Simulator(udid=udid, name=model.name, version=model.version, booted=False)
