"""What each run in a farm's results ended with, as if it had been run on a device that is at hand."""

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ortrim.errors import VerifyError
from ortrim.tools.command import Completed
from ortrim.verify.devices.base import RunnerOutput, RunRequest
from ortrim.verify.devices.farms.harness_requests import REPORT, told
from ortrim.verify.devices.farms.harness_results import HarnessResults, HarnessRun, folder_of_run
from ortrim.verify.devices.pulled_files import copy_files, text_of
from ortrim.verify.devices.run_errors import MOST_PRINTED_BYTES, NOT_STARTED, endless_output, not_startable
from ortrim.verify.devices.shell_script import signalled
from ortrim.verify.runner_output import never_ended, place_of, read_output

OUTPUTS: Final = "outputs"
EARLY_SECONDS: Final = 1.0
"""A run that was stopped so long before its limit was stopped at another: that of all runs together."""


class Answers:
    """The results of some requests, in their order; `where` names the device and the run at the farm."""

    def __init__(
        self, *, device: str, where: str, folder: Path, results: HarnessResults, requests: Sequence[RunRequest]
    ) -> None:
        self.results = results
        self._device = device
        self._where = where
        self._folder = folder
        self._count = len(requests)
        self._numbers: dict[RunRequest, deque[int]] = {}
        for number, request in enumerate(requests):
            self._numbers.setdefault(told(request), deque()).append(number)

    def next(self, request: RunRequest) -> RunnerOutput:
        """Return what the next of all equal requests ended with.

        Raises `VerifyError`: `farm-run-missing` (the app or its time ended before it), and those that other devices
        raise; `LookupError` for a request that is none of ours: a fault of the program.
        """
        numbers = self._numbers.get(told(request))
        if not numbers:
            raise LookupError(f"{self._device} was not told of this run: {place_of(request)}")
        number = numbers.popleft()
        if number >= len(self.results.runs):
            raise self._missing(number)
        folder = folder_of_run(self._folder, number)
        if request.outputs and folder and not (folder / OUTPUTS).is_symlink():
            copy_files(folder / OUTPUTS, request.outputs)
        return read_output(self._completed(number, folder, request), request)

    def _completed(self, number: int, folder: Path | None, request: RunRequest) -> Completed:
        """Return how a run ended; raises for one that was not left to its end."""
        run: HarnessRun = self.results.runs[number]
        match run.how:
            case "timeout":
                early = run.seconds < request.repetition.timeout_seconds - EARLY_SECONDS
                raise self._missing(number) if early else never_ended(request)
            case "endless":
                raise endless_output(place_of(request))
            case "not-started":
                raise not_startable(self._device, run.stderr)
            case "exit" if run.code in NOT_STARTED:  # Java gives to a shell what the system cannot execute
                raise not_startable(self._device, run.stderr.strip())
            case "exit":
                report = _report(folder, request) or run.stdout
                return Completed(argv=(), returncode=signalled(run.code), stdout=report, stderr=run.stderr)

    def _missing(self, number: int) -> VerifyError:
        died = "" if self.results.complete else "the app ended before it, for want of memory or of time"
        what = f"run {number + 1} of {self._count} was not carried out"
        return VerifyError("farm-run-missing", what, where=self._where, why=self.results.problem or died)


def _report(folder: Path | None, request: RunRequest) -> str:
    """Return the runner's report; empty when there is none."""
    path = folder / REPORT if folder else None
    if path is None or not path.is_file():
        return ""
    if path.stat().st_size > MOST_PRINTED_BYTES:
        raise endless_output(place_of(request))
    return text_of(path)
