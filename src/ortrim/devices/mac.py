"""The Mac on which ortrim runs: its own programs, and those for Macs with Intel's processors by Rosetta 2."""

import dataclasses
import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from ortrim.base.command import run
from ortrim.devices.device import ProgramDevice
from ortrim.devices.facts import number
from ortrim.devices.host import ENVIRONMENT, run_locally
from ortrim.devices.kinds import HOST
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest, runner_words
from ortrim.parity.runner_output import read_output

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
    cores, memory, page = (number(r"\A(\d+)\Z", said.get(f"hw.{name}", "")) for name in ("ncpu", "memsize", "pagesize"))
    return HostFacts(
        system="Darwin",
        machine=machine,
        cpu=said.get("machdep.cpu.brand_string") or machine,
        cores=cores or 1,
        memory_bytes=memory or 0,
        kind="vm" if said.get("kern.hv_vmm_present") == "1" else "physical",
        model=said.get("hw.model", ""),
        abi=machine,
        os_version=f"macOS {version}".strip(),
        fingerprint=said.get("kern.osversion", ""),
        page_bytes=page,
    )


SURVEY_SECONDS: Final = 30.0
PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
"""`sysctl` lies in /usr/sbin."""
TRY: Final = ("arch", "-x86_64", "/usr/bin/true")
ROSETTA_HINT: Final = "run: softwareupdate --install-rosetta"


class MacHost(ProgramDevice):
    """Runs the runner as a child process; with `translated`, a runner for Intel's processors on Apple's.

    What a translated program takes is Rosetta's too, so that neither its time nor its memory means anything of another
    Mac.
    """

    name = HOST.name

    def __init__(self, cores: tuple[int, ...] = (), *, translated: bool = False) -> None:
        if cores:
            what, hint = "macOS cannot pin programs to cores", "leave out --cores"
            raise UsageError("cannot-pin", what, where=self.name, hint=hint)
        if translated:
            _require_rosetta()
        self.memory_meaningful = self.time_meaningful = not translated
        self._translated = translated

    def facts(self) -> HostFacts:
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
        """Run the runner once."""
        return read_output(run_locally(runner_words(request), request), request)


def mac_facts() -> HostFacts:
    """Ask this Mac for its facts."""
    return mac_host(run(SURVEY, environment={**ENVIRONMENT, "PATH": PATH}, timeout_seconds=SURVEY_SECONDS).stdout)


def _require_rosetta() -> None:
    try:
        done = run(TRY, environment={**ENVIRONMENT, "PATH": PATH}, timeout_seconds=SURVEY_SECONDS)
        why = "" if done.returncode == 0 else done.stderr.strip() or f"'{' '.join(TRY)}' ended with {done.returncode}"
    except Diagnostic as error:
        why = error.what
    if why:
        what = "this Mac cannot run programs for Intel's processors"
        raise VerifyError("no-rosetta", what, where=HOST.name, why=why, hint=ROSETTA_HINT)


LIST: Final = ("ps", "-axww", "-o", "pid=,args=")
LIST_SECONDS: Final = 20.0
PROCESS_LINE: Final = re.compile(r"^\s*(\d{1,9}) (.*)$", re.MULTILINE)


def kill_with(word: str) -> None:
    """Kill every program that has a word, which nobody else can know, in its command line. Raises nothing."""
    with suppress(Diagnostic):
        listed = run(LIST, environment=ENVIRONMENT, timeout_seconds=LIST_SECONDS).stdout
        for process, words in PROCESS_LINE.findall(listed):
            if word in words:
                with suppress(OSError):
                    os.kill(int(process), signal.SIGKILL)
