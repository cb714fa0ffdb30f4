"""The Mac on which ortrim itself runs: its own programs, and those for Macs with Intel's processors by Rosetta 2."""

import dataclasses
from typing import Final

from ortrim.core import measurements
from ortrim.errors import Diagnostic, UsageError, VerifyError
from ortrim.tools.command import run
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.local_run import ENVIRONMENT, run_locally
from ortrim.verify.devices.mac_facts import SURVEY, TRANSLATED, mac_host
from ortrim.verify.runner_output import read_output

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
            what, hint = "macOS keeps no program on chosen cores", "leave out --cores"
            raise UsageError("cannot-pin", what, where=self.name, hint=hint)
        if translated:
            _require_rosetta()
        self.memory_meaningful = self.time_meaningful = not translated
        self._translated = translated

    def facts(self) -> measurements.Host:
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


def mac_facts() -> measurements.Host:
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
