"""A device of a farm: all that is to be run there is told beforehand, runs in one go, and is then answered for."""

import dataclasses
import secrets
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from ortrim.core.harness import HarnessApks, HarnessContent
from ortrim.core.measurements import Host
from ortrim.storage.files import storage_errors
from ortrim.verify.devices.base import RunnerOutput, RunRequest
from ortrim.verify.devices.farms.base import Farm, FarmJob, Tell
from ortrim.verify.devices.farms.harness_answers import Answers
from ortrim.verify.devices.farms.harness_requests import batch_seconds, harness_content
from ortrim.verify.devices.farms.harness_results import HarnessResults, read_results
from ortrim.verify.devices.thermal import NOT_THROTTLED, Thermal, throttling_text

RESULTS_FOLDER: Final = "/sdcard/Download/ortrim"
"""Where farms look for results: an app may write there on every version of Android, and farms may read there."""
INSTALL_SECONDS: Final = 300.0
"""For installing and starting the app, laying out its files, and printing the results."""

MakeApks = Callable[[HarnessContent], HarnessApks]
"""Makes the app that carries what it is given, or raises a `Diagnostic` that says how to make it."""


class FarmDevice:
    """A device of a farm, in the farm's words, on which nothing runs before `prepare`.

    What came back stays in `folder`, which is ours alone; after `prepare`, `url` is where the farm shows the run, and
    `log` the device's log, of farms that have them. `heat` says why its times are not meaningful, empty while
    they are. Whether it is a phone or an emulator is known after `prepare`.
    """

    memory_meaningful = True

    def __init__(
        self, *, farm: Farm, device: str, make_apks: MakeApks, folder: Path, tell: Tell = lambda _: None
    ) -> None:
        self.name = f"{farm.name}:{device}"
        self.time_meaningful = True
        self.heat = ""
        self.url = ""
        self.log: Path | None = None
        self._farm = farm
        self._device = device
        self._make_apks = make_apks
        self._folder = folder
        self._tell = tell
        self._answers: Answers | None = None

    def prepare(self, requests: Sequence[RunRequest]) -> None:
        """Run all requests on the device, in this order; what they ended with is `run`'s to say.

        Raises what `make_apks` and `Farm.run` raise, and `VerifyError` as `read_results` does.
        """
        content = harness_content(requests)
        run = self._farm.run(self._job(content, batch_seconds(requests) + INSTALL_SECONDS), self._tell)
        self.url, self.log = run.url, run.log
        if run.device:
            self._tell(f"it ran on {run.device}")
        about = ", ".join(filter(None, (run.device, run.url)))
        where = f"{self.name} ({about})" if about else self.name
        results = read_results(run.folder, content, where, run.log)
        self._answers = Answers(device=self.name, where=where, folder=run.folder, results=results, requests=requests)
        self._judge_time(results)

    def facts(self) -> Host:
        """Describe the device as it was after the runs."""
        assert self._answers is not None, "prepare comes first"
        return dataclasses.replace(
            self._answers.results.host, memory_meaningful=self.memory_meaningful, time_meaningful=self.time_meaningful
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Return what a request ended with that `prepare` was told of, as `Answers.next` does and raises."""
        assert self._answers is not None, "prepare comes first"
        return self._answers.next(request)

    def close(self) -> None:
        """Leave everything as it is: the farm has cleaned up behind the run."""

    def _job(self, content: HarnessContent, seconds: float) -> FarmJob:
        apks = self._make_apks(content)
        with storage_errors(self._folder):
            if self._folder.exists():
                shutil.rmtree(self._folder)
            self._folder.parent.mkdir(parents=True, exist_ok=True)
        return FarmJob(
            name=f"ortrim-{secrets.token_hex(6)}",
            app=apks.app,
            test=apks.test,
            device=self._device,
            results=RESULTS_FOLDER,
            destination=self._folder,
            timeout_seconds=seconds,
        )

    def _judge_time(self, results: HarnessResults) -> None:
        """Mark times that mean nothing: an emulator's, and those of a phone that throttled."""
        hottest = max((run.thermal for run in results.runs), default=NOT_THROTTLED)
        if hottest > NOT_THROTTLED:
            self.heat = throttling_text(Thermal(status=hottest, battery_celsius=None))
        self.time_meaningful = not self.heat and results.host.kind == "physical"
