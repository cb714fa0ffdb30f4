"""Which devices run programs for Apple's systems, and what a library for them is compared with; and the Mac itself.

- The Mac on which ortrim runs: its own programs, and those for Macs with Intel's processors by Rosetta 2.
- What a Mac says of itself. Pure.
- Programs on this Mac that have to be ended and are nobody's children any more.
"""

import dataclasses
import os
import platform
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from ortrim.base.command import run
from ortrim.binaries.apple import SIMULATOR
from ortrim.binaries.libraries import LibrarySize
from ortrim.buildspec.targets import APPLE_ARCHITECTURES, CATALYST, Architecture, OperatingSystem, Target
from ortrim.compiling.plan import BuildJob
from ortrim.devices.device import Device
from ortrim.devices.emulators import DARWIN, has_processor_of
from ortrim.devices.facts import number
from ortrim.devices.host import ENVIRONMENT, run_locally
from ortrim.errors import Diagnostic, ToolError, UsageError, VerifyError
from ortrim.models.full_runtime import MAC_PLATFORMS, FullRuntime, mac_library
from ortrim.parity import measurements
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest, runner_words
from ortrim.parity.runner_output import read_output
from ortrim.platforms.delivery import Verifying
from ortrim.verify.measure import NO_SIZE, Baseline

NAMES: Final = (
    "machdep.cpu.brand_string",
    "hw.model",
    "hw.machine",
    "hw.ncpu",
    "hw.memsize",
    "hw.pagesize",
    "kern.osproductversion",
    "kern.osversion",
    "kern.hv_vmm_present",
)
SURVEY: Final = ("sysctl", *NAMES)
LINE: Final = re.compile(r"^([a-z0-9_.]+): (.*)$", re.MULTILINE)
TRANSLATED: Final = "x86_64 by Rosetta 2 on"


def mac_host(printed: str) -> HostFacts:
    """Return the facts in the answer to `SURVEY`."""
    said: Mapping[str, str] = {name: value.strip() for name, value in LINE.findall(printed.replace("\r", ""))}
    machine, version = said.get("hw.machine", ""), said.get("kern.osproductversion", "")
    return HostFacts(
        system="Darwin",
        machine=machine,
        cpu=said.get("machdep.cpu.brand_string") or machine,
        cores=_whole(said, "hw.ncpu") or 1,
        memory_bytes=_whole(said, "hw.memsize") or 0,
        kind="vm" if said.get("kern.hv_vmm_present") == "1" else "physical",
        model=said.get("hw.model", ""),
        abi=machine,
        os_version=f"macOS {version}".strip(),
        fingerprint=said.get("kern.osversion", ""),
        page_bytes=_whole(said, "hw.pagesize"),
    )


def _whole(said: Mapping[str, str], name: str) -> int | None:
    return number(r"\A(\d+)\Z", said.get(name, ""))


SURVEY_SECONDS: Final = 30.0
PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
"""`sysctl` lies in /usr/sbin."""
TRY: Final = ("arch", "-x86_64", "/usr/bin/true")
ROSETTA_HINT: Final = "run: softwareupdate --install-rosetta"


class MacHost:
    """Runs the runner as a child process; with `translated`, a runner for Intel's processors on Apple's.

    What a translated program takes is Rosetta's too, so that neither its time nor its memory means anything of another
    Mac. Raises `UsageError` `cannot-pin` for `cores`: macOS keeps no program on chosen ones. Raises `VerifyError`
    `no-rosetta`.
    """

    name = "host"

    def __init__(self, cores: tuple[int, ...] = (), *, translated: bool = False) -> None:
        if cores:
            what, hint = "macOS cannot pin programs to cores", "leave out --cores"
            raise UsageError("cannot-pin", what, where=self.name, hint=hint)
        if translated:
            _require_rosetta()
        self.memory_meaningful = self.time_meaningful = not translated
        self._translated = translated

    def facts(self) -> measurements.HostFacts:
        """Describe this Mac, and that programs are translated when they are."""
        facts = mac_facts()
        if not self._translated:
            return facts
        return dataclasses.replace(
            facts,
            machine="x86_64",
            abi="x86_64",
            cpu=f"{TRANSLATED} {facts.cpu}",
            kind="user-emulation",
            memory_meaningful=False,
            time_meaningful=False,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once. Raises `VerifyError`: those of `run_locally` and of `read_output`."""
        return read_output(run_locally(runner_words(request), request), request)

    def close(self) -> None:
        """Leave everything as it is: runs on this machine write nothing but their outputs."""


def mac_facts() -> measurements.HostFacts:
    """Ask this Mac for its facts. Raises `ToolError` when it cannot be asked."""
    return mac_host(run(SURVEY, environment={**ENVIRONMENT, "PATH": PATH}, timeout_seconds=SURVEY_SECONDS).stdout)


def _require_rosetta() -> None:
    try:
        done = run(TRY, environment={**ENVIRONMENT, "PATH": PATH}, timeout_seconds=SURVEY_SECONDS)
        why = "" if done.returncode == 0 else done.stderr.strip() or f"'{' '.join(TRY)}' ended with {done.returncode}"
    except Diagnostic as error:
        why = error.what
    if why:
        what = "this Mac cannot run programs for Intel's processors"
        raise VerifyError("no-rosetta", what, where="host", why=why, hint=ROSETTA_HINT)


LIST: Final = ("ps", "-axww", "-o", "pid=,args=")
LIST_SECONDS: Final = 20.0
PROCESS_LINE: Final = re.compile(r"^\s*(\d{1,9}) (.*)$", re.MULTILINE)


def kill_with(word: str) -> None:
    """Kill every program that has a word, which nobody else can know, in its command line. Raises nothing."""
    with suppress(Diagnostic):
        listed = run(LIST, environment=ENVIRONMENT, timeout_seconds=LIST_SECONDS).stdout
        for number, words in PROCESS_LINE.findall(listed):
            if word in words:
                with suppress(OSError):
                    os.kill(int(number), signal.SIGKILL)


class AppleDevices(Verifying):
    """Macs run programs for Macs, simulators and phones those for phones; nothing emulates Apple's systems."""

    def runs_here(self, target: Target) -> bool:
        """Whether this is a Mac that runs a target's programs, those that Rosetta 2 translates among them."""
        return target.system is OperatingSystem.MACOS and (_on_mac_of(target) or translated_here(target))

    def kinds_for(self, target: Target, cpu: str = "") -> str:
        """Name the one kind of device that runs a target's programs."""
        if is_simulated(target):
            return "simctl[:NAME], on a Mac with such a processor"
        if target.system is OperatingSystem.MACOS:
            return "the Mac itself: run the same command on one"
        return "devicectl[:NAME], on a Mac"

    def refusal(self, target: Target, kind: str) -> str:
        """Refuse all but that kind; a simulator has to be this Mac's, a phone may be one of a farm of Macs."""
        match kind:
            case "simctl" | "devicectl":
                return _phone_refusal(target, kind)
            case "adb" | "ssh":
                return f"{kind} reaches Linux and Android, which {target.identifier} is not for"
            case _:
                return super().refusal(target, kind)

    def default_devices(self, target: Target, cpu: str = "") -> tuple[str, ...]:
        """Return the simulator, or this Mac, where one runs a target's programs."""
        if simulated_here(target):
            return ("simctl",)
        return ("host",) if self.runs_here(target) else ()

    def nowhere(self, target: Target) -> str:
        """Say that the library was run nowhere."""
        if target.system is OperatingSystem.MACOS:
            return "its library was not run: not verified, needs a Mac"
        return super().nowhere(target)

    def open_host(self, target: Target, cores: Sequence[int]) -> Device:
        """Return this Mac. Raises as `MacHost` does."""
        return MacHost(tuple(cores), translated=translated_here(target))

    def baseline_platforms(self, target: Target) -> tuple[str, ...]:
        """Return those of the wheel for Macs."""
        return MAC_PLATFORMS.get(target.architecture.value, ()) if _is_mac(target) else ()

    def baseline(self, job: BuildJob, runtime: FullRuntime, requirements: str | None) -> tuple[Baseline, LibrarySize]:
        """Return for Macs the official library, none to be run, and its sizes; there is none for phones and Catalyst.

        Not every version has a wheel for either kind of Mac, nor its digest among the pins; the name then says so.
        Raises as `mac_library` and `architecture_size` do.
        """
        target = job.target
        if not _is_mac(target):
            name = "none: no official package for Apple's phones is pinned"
            return Baseline(library=None, name=name), NO_SIZE
        return mac_baseline(runtime.version, requirements, target.architecture)


def _is_mac(target: Target) -> bool:
    return target.system is OperatingSystem.MACOS and target.identifier != CATALYST


def translated_here(target: Target) -> bool:
    """Whether this is a Mac with Apple's processor, and a target is for Macs with Intel's."""
    apple = platform.system() == DARWIN and platform.machine() == "arm64"
    return apple and target.system is OperatingSystem.MACOS and target.architecture is Architecture.X64


def is_simulated(target: Target) -> bool:
    """Whether a target's programs run in a simulator of a phone, and on no phone."""
    return target.identifier.startswith(SIMULATOR)


def simulated_here(target: Target) -> bool:
    """Whether this is a Mac whose simulators run programs for a target."""
    return is_simulated(target) and _on_mac_of(target)


def _on_mac_of(target: Target) -> bool:
    return platform.system() == DARWIN and has_processor_of(target)


def _phone_refusal(target: Target, kind: str) -> str:
    simulator = kind == "simctl"
    if target.system is not OperatingSystem.IOS or is_simulated(target) is not simulator:
        return f"{kind} runs no programs for {target.identifier}"
    if simulator and not simulated_here(target):
        return f"this machine has no simulator that runs {target.identifier}"
    return ""


def mac_baseline(version: str, requirements: str | None, architecture: Architecture) -> tuple[Baseline, LibrarySize]:
    """Return the official library for one kind of Mac, for its size alone; see `baseline`."""
    try:
        library = mac_library(version, requirements, architecture.value)
    except ToolError as error:
        if error.code not in {"bundle-lacks", "install-failed"}:
            raise
        library = None
    if library is None:
        return Baseline(library=None, name=f"none: no official wheel of {version} for macOS is pinned"), NO_SIZE
    from ortrim.binaries.macho_image import architecture_size  # noqa: PLC0415 - imports lief

    name = f"onnxruntime {version} (official wheel for macOS, its size alone)"
    return Baseline(library=None, name=name), architecture_size(library, APPLE_ARCHITECTURES[architecture])
