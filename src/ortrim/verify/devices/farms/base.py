"""What every device farm offers: to run an app's instrumentation on one of its devices and bring back the files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Tell = Callable[[str], None]
"""Takes what the farm is doing, in a few words: `uploading app.apk`, `waiting for a device`, `running`."""


@dataclass(frozen=True, kw_only=True)
class FarmJob:
    """One run of an instrumentation on one device.

    `name` is what the farm lists the run under, another for each. `device` is in the farm's own words
    (`MediumPhone.arm-34`, `Samsung Galaxy S23-13.0`). `results` is the folder on the device whose files are wanted, and
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
        """Name on the command line, before the colon: `firebase`, `devicefarm`, `browserstack`."""

    def run(self, job: FarmJob, tell: Tell) -> FarmRun:
        """Run a job to its end, and remove from the farm what costs or counts against a quota where it can be removed.

        Interrupted, it stops the run there. Leaves nothing at the destination when it raises. Raises `VerifyError`,
        whose `where` names farm and device: `farm-credentials`, `farm-project` (none is set, unknown or without the
        services it needs), `farm-device-unknown`, `farm-quota`, `farm-refused` (an app it does not take),
        `farm-inconclusive`, `farm-unsupported` (an app that the device cannot run), `farm-trouble` (its
        infrastructure), `farm-timeout` (the run, or waiting for a device), `farm-cancelled`, `farm-results-missing`;
        `NetworkError` `farm-unreachable` (nothing was started, or it is not known what became of it) and
        `farm-upload-lost`; `ToolError` for a program that is absent or too old; `StorageError`.
        """
