"""The machine on which ortrim itself runs: the runner, and other programs, as children of this process.

A Mac also runs programs for Macs with Intel's processors, by Rosetta 2.
"""

import dataclasses
import os
import platform
import re
import secrets
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, run
from ortrim.base.tools import MOST_PRINTED_BYTES
from ortrim.devices.device import NOT_STARTED, ProgramDevice, check_pinning, not_startable, pinned
from ortrim.devices.facts import number, read_cpu_information
from ortrim.devices.kinds import HOST
from ortrim.devices.remote import VARIABLE
from ortrim.errors import Diagnostic, ToolError, UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunnerOutput, RunRequest, read_output, runner_words, within_limits

ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""What the runner sees besides our mark, so that no variable of the user's shell favours one library."""
PASSED: Final = "LOCPATH"
"""The variable that it sees as well: it names the folder of glibc's locales, without which some models do not load."""


def run_locally(words: Sequence[str], request: RunRequest, *, cwd: Path | None = None) -> Completed:
    """Run the runner to its end. Whatever else happens, it is ended, and with it all that it started."""
    mark = f"@@{secrets.token_hex(8)}"
    try:
        with within_limits(request):
            return run(
                words,
                cwd=cwd,
                environment={**_environment(), VARIABLE: mark},
                timeout_seconds=request.repetition.timeout_seconds,
                most_bytes=MOST_PRINTED_BYTES,
            )
    except ToolError as error:
        _kill(mark)
        raise not_startable(str(request.runner), error.why) from error
    except BaseException:  # Ctrl-C must not leave a runner's children behind either
        _kill(mark)
        raise


def absolute(request: RunRequest) -> RunRequest:
    """Return a request that holds in every working folder."""
    return dataclasses.replace(
        request,
        runner=request.runner.absolute(),
        model=request.model.absolute(),
        cases=tuple(dataclasses.replace(case, folder=case.folder.absolute()) for case in request.cases),
        outputs=request.outputs.absolute() if request.outputs else None,
    )


def _kill(mark: str) -> None:
    """Kill what carries the mark: a child in a session of its own is not among those that `run` stops.

    Only Linux tells of the environments of processes.
    """
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{VARIABLE}={mark}".encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)


def memory_bytes() -> int:
    """Return the memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class Host(ProgramDevice):
    """Runs the runner as a child process, on `cores` (all, when empty)."""

    name = HOST.name

    def __init__(self, cores: tuple[int, ...] = ()) -> None:
        self._cores = cores
        check_pinning(
            lambda words, seconds: run(words, environment=_environment(), timeout_seconds=seconds), cores, self.name
        )

    def facts(self) -> HostFacts:
        """Describe this machine."""
        cpu, features = read_cpu_information(_cpu_information())
        return HostFacts(
            system=platform.system(),
            machine=platform.machine(),
            cpu=cpu or platform.processor() or platform.machine(),
            cores=os.cpu_count() or 1,
            pinned_cores=self._cores,
            memory_bytes=memory_bytes(),
            kind="vm" if "hypervisor" in features else "physical",
            abi=platform.machine(),
            os_version=f"{platform.system()} {platform.release()}",
            page_bytes=os.sysconf("SC_PAGE_SIZE"),
            cpu_features=features,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once."""
        done = run_locally((*pinned(self._cores), *runner_words(request)), request)
        if self._cores and done.returncode in NOT_STARTED:  # taskset's own
            raise not_startable(str(request.runner), done.stderr.strip())
        return read_output(done, request)


def saturates_here() -> bool:
    """Whether int8 GEMM saturates here, as with AVX2 alone, and are others than on most devices.

    `vpmaddubsw` adds two of them in 16 bits; SSE's kernels, VNNI and ARM add in 32
    (https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html).
    """
    features = set(read_cpu_information(_cpu_information())[1])
    return "avx2" in features and not features & {"avx_vnni", "avx512_vnni"}


def adds_by_fours_here() -> bool:
    """Whether a vector holds four floats here, and no more."""
    return platform.machine() in {"aarch64", "arm64"}


def _environment() -> dict[str, str]:
    return {**ENVIRONMENT, **({PASSED: os.environ[PASSED]} if PASSED in os.environ else {})}


def _cpu_information() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


MAC_NAMES: Final = (
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
MAC_SURVEY: Final = ("sysctl", *MAC_NAMES)
MAC_LINE: Final = re.compile(r"^([a-z0-9_.]+): (.*)$", re.MULTILINE)
TRANSLATED: Final = "x86_64 by Rosetta 2 on"


def mac_host(printed: str) -> HostFacts:
    """Return the facts in the answer to `MAC_SURVEY`."""
    said: Mapping[str, str] = {name: value.strip() for name, value in MAC_LINE.findall(printed.replace("\r", ""))}
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
MAC_PATH: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
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
    return mac_host(
        run(MAC_SURVEY, environment={**ENVIRONMENT, "PATH": MAC_PATH}, timeout_seconds=SURVEY_SECONDS).stdout
    )


def _require_rosetta() -> None:
    try:
        done = run(TRY, environment={**ENVIRONMENT, "PATH": MAC_PATH}, timeout_seconds=SURVEY_SECONDS)
        why = "" if done.returncode == 0 else done.stderr.strip() or f"'{' '.join(TRY)}' ended with {done.returncode}"
    except Diagnostic as error:
        why = error.what
    if why:
        what = "this Mac cannot run programs for Intel's processors"
        raise VerifyError("no-rosetta", what, where=HOST.name, why=why, hint=ROSETTA_HINT)


PROCESSES: Final = ("ps", "-axww", "-o", "pid=,args=")
PROCESSES_SECONDS: Final = 20.0
PROCESS_LINE: Final = re.compile(r"^\s*(\d{1,9}) (.*)$", re.MULTILINE)


def kill_with(word: str) -> None:
    """Kill every program that has a word, which nobody else can know, in its command line. Raises nothing."""
    with suppress(Diagnostic):
        listed = run(PROCESSES, environment=ENVIRONMENT, timeout_seconds=PROCESSES_SECONDS).stdout
        for process, words in PROCESS_LINE.findall(listed):
            if word in words:
                with suppress(OSError):
                    os.kill(int(process), signal.SIGKILL)
