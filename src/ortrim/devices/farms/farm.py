"""What every device farm offers: to run an app's instrumentation on one of its devices and bring back the files.

- A device of a farm, which does all runs in one job.
"""

import dataclasses
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ortrim.base.files import storage_errors
from ortrim.devices.device import Device, Outcome
from ortrim.devices.facts import NOT_THROTTLED, Thermal, throttling_text
from ortrim.devices.harness import (
    HarnessApks,
    HarnessContent,
    HarnessResults,
    batch_seconds,
    harness_content,
    outcomes,
    read_results,
)
from ortrim.parity.measurements import HostFacts
from ortrim.parity.runner import RunRequest

Tell = Callable[[str], None]
"""Takes what the farm is doing, in a few words: `uploading app.apk`, `waiting for a device`, `running`."""


@dataclass(frozen=True, kw_only=True)
class FarmJob:
    """One run of an instrumentation on one device.

    `name` is what the farm lists the run under, another for each. `device` is in the farm's own words
    (`MediumPhone.arm-34`, `voice/phones`). `results` is the folder on the device whose files are wanted, and
    `destination` a folder of this machine that is not there yet. After `timeout_seconds` on the device the farm ends
    the run; waiting for a free one is not counted, and ends after `queue_seconds`.
    """

    name: str
    app: Path
    test: Path
    device: str
    results: str
    destination: Path
    timeout_seconds: float = 900.0
    queue_seconds: float = 3600.0


@dataclass(frozen=True, kw_only=True)
class FarmRun:
    """A run that ended with a verdict of the instrumentation's own: whether it passed, and its files.

    `device` is the one that ran it in the farm's words, which may be any of several; `url` is where a person sees the
    run; each is empty when the farm does not say. `folder` holds what lay in the job's `results`, and nothing else;
    `log` is the device's log when the farm keeps one, beside it.
    """

    passed: bool
    device: str
    folder: Path
    log: Path | None
    url: str
    seconds: float


class Farm(Protocol):
    """A farm, reached with the credentials that its own tools use."""

    @property
    def name(self) -> str:
        """Name on the command line, before the colon: `firebase`, `devicefarm`."""

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job to its end, and remove from the farm what costs or counts against a quota where it can be removed.

        Interrupted, it stops the run there. Leaves nothing at the destination when it raises. Raises `VerifyError`,
        whose `where` names farm and device: `farm-credentials`, `farm-project` (none is set, unknown or without the
        services it needs), `farm-device-unknown`, `farm-quota`, `farm-refused` (an app it does not take),
        `farm-inconclusive`, `farm-unsupported` (an app that the device cannot run), `farm-failed` (its
        infrastructure), `farm-timeout` (the run, or waiting for a device), `farm-cancelled`, `farm-results-missing`;
        `NetworkError` `farm-unreachable` (nothing was started, or it is not known what became of it) and
        `farm-upload-lost`; `ToolError` for a program that is absent or too old; `StorageError`.
        """


RESULTS_FOLDER: Final = "/sdcard/Download/ortrim"
"""Where farms look for results: an app may write there on every version of Android, and farms may read there."""
INSTALL_SECONDS: Final = 300.0
"""For installing and starting the app, laying out its files, and printing the results."""

MakeApks = Callable[[HarnessContent], HarnessApks]
"""Makes the app that carries what it is given, or raises a `Diagnostic` that says how to make it."""


class FarmDevice(Device):
    """A device of a farm, in the farm's words, which runs everything in one job.

    What came back stays in `folder`, which is ours alone. Whether it is a phone or an emulator is known afterwards.
    """

    def __init__(
        self, *, farm: Farm, device: str, make_apks: MakeApks, folder: Path, tell: Tell = lambda _: None
    ) -> None:
        self.name = f"{farm.name}:{device}"
        self._farm = farm
        self._device = device
        self._make_apks = make_apks
        self._folder = folder
        self._tell = tell
        self._host: HostFacts | None = None

    def run_all(self, requests: Iterable[RunRequest]) -> Iterator[Outcome]:
        """Run all requests on the device. Raises what `make_apks`, `Farm.run` and `read_results` raise."""
        asked = tuple(requests)
        content = harness_content(asked)
        run = self._farm.run(self._job(content, batch_seconds(asked) + INSTALL_SECONDS), self._tell)
        self.url, self.log = run.url, run.log
        if run.device:
            self._tell(f"it ran on {run.device}")
        about = ", ".join(filter(None, (run.device, run.url)))
        where = f"{self.name} ({about})" if about else self.name
        results = read_results(run.folder, content, where, run.log)
        self._host = results.host
        self._judge_time(results)
        yield from outcomes(asked, results, run.folder, device=self.name, where=where)

    def facts(self) -> HostFacts:
        """Describe the device as it was after the runs."""
        assert self._host is not None, "nothing has run"
        return dataclasses.replace(self._host, time_meaningful=self.time_meaningful)

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
