"""What the app on a farm's device leaves: how each run ended, and what the device says of itself.

It came from a machine that is not ours, through a service that is not ours: it may be anything.
"""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from ortrim.core.harness import HarnessContent
from ortrim.core.measurements import Host
from ortrim.core.serialization import from_json
from ortrim.errors import VerifyError
from ortrim.storage.files import storage_errors
from ortrim.verify.devices.adb_facts import adb_host, adb_thermal
from ortrim.verify.devices.farms.crashes import crash
from ortrim.verify.devices.survey import SECTION

RESULTS: Final = "results.json"
RUNS: Final = "runs"
MOST_RESULTS_BYTES: Final = 64 << 20


@dataclass(frozen=True, kw_only=True)
class HarnessRun:
    """How one process ended: `code` is a shell's exit code, `thermal` Android's status after it, -1 when unknown.

    `stdout` and `stderr` are the last of what it printed; for one that did not start, the reason is in `stderr`.
    """

    how: Literal["exit", "timeout", "endless", "not-started"]
    code: int
    stdout: str
    stderr: str
    seconds: float
    thermal: int


@dataclass(frozen=True, kw_only=True)
class HarnessResults:
    """All that came back. `problem` is why there are fewer runs than were asked for; not `complete`, the app died."""

    schema: Literal["ortrim-results/1"]
    requests_sha256: str
    problem: str
    complete: bool
    runs: tuple[HarnessRun, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    facts_after: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> Host:
        """The machine as it described itself after the runs, and its thermal state before them."""
        before, after = _printed(self.facts), _printed(self.facts_after or self.facts)
        return dataclasses.replace(adb_host(after), thermal_before=adb_thermal(before).status)


def read_results(folder: Path, content: HarnessContent, where: str, log: Path | None = None) -> HarnessResults:
    """Return the results in a folder that are those of `content`; where there are none, `log` may tell of a crash.

    Raises `VerifyError`: `farm-results-missing`, `farm-results-unreadable`, `farm-results-foreign` (of other requests);
    `StorageError` when the folder cannot be read.
    """
    path = folder / RESULTS
    if not path.is_file() or path.is_symlink():
        what, hint = "the run left no results", "look at the device's log at the farm"
        raise VerifyError("farm-results-missing", what, where=where, why=crash(log) if log else "", hint=hint)
    results = _read(path, where)
    if results.requests_sha256 != hashlib.sha256(content.requests.encode()).hexdigest():
        what = "what came back are the results of other requests"
        hint = "the farm gave an older run's files; verify again"
        raise VerifyError("farm-results-foreign", what, where=where, hint=hint)
    return results


def folder_of_run(folder: Path, number: int) -> Path | None:
    """Return the folder of what a run left, None when it is not there or, through a link, is somewhere else."""
    inner = Path(RUNS) / f"{number:03}"
    found = folder / inner
    return found if found.is_dir() and found.resolve() == folder.resolve() / inner else None


def _read(path: Path, where: str) -> HarnessResults:
    with storage_errors(path):
        if path.stat().st_size > MOST_RESULTS_BYTES:
            raise _unreadable(where, f"it has more than {MOST_RESULTS_BYTES >> 20} MiB")
        text = path.read_bytes()
    try:
        return from_json(HarnessResults, text)
    except (ValidationError, ValueError) as error:
        raise _unreadable(where, "\n".join(str(error).splitlines()[:3])) from error


def _unreadable(where: str, why: str) -> VerifyError:
    hint = "look at the device's log at the farm, and verify again"
    return VerifyError(
        "farm-results-unreadable", f"{RESULTS} is not what our app writes", where=where, why=why, hint=hint
    )


def _printed(facts: Mapping[str, str]) -> str:
    """Return facts as the shell of an Android device prints them."""
    return "".join(f"\n{SECTION}{name}\n{text}\n" for name, text in facts.items())
