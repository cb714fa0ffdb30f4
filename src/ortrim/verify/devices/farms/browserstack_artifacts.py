"""What a build at BrowserStack leaves: logs. It brings back no file of the device's, so results travel in its log."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.errors import VerifyError
from ortrim.verify.devices.farms.browserstack_account import Account
from ortrim.verify.devices.farms.browserstack_answers import SessionDetails
from ortrim.verify.devices.farms.browserstack_builds import BUILDS, url_of
from ortrim.verify.devices.farms.polling import pause
from ortrim.verify.devices.farms.results import (
    LARGEST_LOG,
    LOG,
    RESULTS,
    append_log,
    fetch,
    missing,
    unpack_log,
)

NO_LOGS: Final = "the build has no device logs"


def details_of(account: Account, build: str, sessions: Iterable[str]) -> tuple[SessionDetails, ...]:
    """Return what is known of a build's sessions. Raises `VerifyError` and `NetworkError`."""
    return tuple(account.ask(f"{BUILDS}/{build}/sessions/{session}", SessionDetails) for session in sessions)


def bring_back(account: Account, build: str, sessions: tuple[str, ...], folder: Path) -> None:
    """Put the device's log, and the results that travelled in it, into a folder.

    A log may follow the end of its build by some seconds, and is asked for again as after a lost connection. Raises
    `VerifyError` `farm-results-missing`, `NetworkError` and `StorageError`.
    """
    pauses = iter(account.patience.pauses)
    while (error := _brought(account, build, sessions, folder)) is not None:
        seconds = next(pauses, None)
        if seconds is None:
            raise missing(account.where, error, url_of(build), folder / LOG)
        pause(seconds)


def _brought(account: Account, build: str, sessions: tuple[str, ...], folder: Path) -> str | None:
    """Try to bring the results back; returns why they are not there."""
    cases = [case for details in details_of(account, build, sessions) for case in details.cases]
    logs = _distinct(case.device_log for case in cases)
    try:
        _fetch_all(account, logs, folder / LOG)
        if _unpacked(folder / LOG, folder, account.where):
            return None
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetched-") as scratch:
            log = Path(scratch) / LOG
            _fetch_all(account, _distinct(case.instrumentation_log for case in cases), log)
            if _unpacked(log, folder, account.where):
                return None
    except VerifyError as error:
        return error.why or error.what
    return "there is nothing of results in the device's log" if logs else NO_LOGS


def _unpacked(log: Path, folder: Path, where: str) -> bool:
    return log.is_file() and unpack_log(log, folder / RESULTS, where)


def _distinct(urls: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(url for url in urls if url))


def _fetch_all(account: Account, urls: Iterable[str], log: Path) -> None:
    """Fetch logs into one file, in the order they are listed."""
    log.unlink(missing_ok=True)
    for url in urls:
        if not account.takes(url):
            raise missing(account.where, "BrowserStack names an address that is not encrypted", "")
        part = log.with_name(f".{log.name}.part")
        fetch(
            url,
            part,
            most_bytes=LARGEST_LOG,
            pauses=account.patience.pauses,
            where=account.where,
            credentials=account.credentials_for(url),
        )
        append_log(part, log)
        part.unlink()
