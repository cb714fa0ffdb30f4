"""What a run at AWS Device Farm leaves: the archive that its specification filled, and the device's log."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ortrim.errors import VerifyError
from ortrim.verify.devices.farms.device_farm_account import Account
from ortrim.verify.devices.farms.device_farm_runs import Ended
from ortrim.verify.devices.farms.device_farm_spec import FOLDER
from ortrim.verify.devices.farms.polling import pause
from ortrim.verify.devices.farms.results import (
    LARGEST_ARCHIVE,
    LARGEST_LOG,
    LOG,
    RESULTS,
    append_log,
    fetch,
    missing,
    unpack_log,
    unpack_results,
)
from ortrim.verify.devices.farms.transfers import same_way

if TYPE_CHECKING:
    from types_boto3_devicefarm.client import DeviceFarmClient

Category = Literal["FILE", "LOG"]

LISTED_AGAIN: Final = 3
"""How often the artifacts of a run that has just ended are asked for while there are none."""


def bring_back(account: Account, ended: Ended, folder: Path) -> None:
    """Put the results and the device's log of a run into a folder.

    Results that the archive lacks are looked for in the log. Raises `VerifyError` `farm-results-missing`,
    `NetworkError` and `StorageError`.
    """
    archives = _listed(account, ended.arn, "FILE", "CUSTOMER_ARTIFACT")
    logs = _listed(account, ended.arn, "LOG", "DEVICE_LOG")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetched-") as scratch:
        why = _from_archives(account, archives, folder / RESULTS, Path(scratch))
        _fetch_logs(account, logs, folder / LOG, Path(scratch))
    if why and not ((folder / LOG).is_file() and unpack_log(folder / LOG, folder / RESULTS, account.where)):
        raise missing(account.where, why, ended.url, folder / LOG)


def _listed(account: Account, run: str, category: Category, kind: str) -> list[str]:
    """Return the addresses of a run's artifacts of one kind."""
    pauses = iter(account.patience.pauses[:LISTED_AGAIN])
    while not (found := account.ask(lambda client: _urls(client, run, category, kind))):
        seconds = next(pauses, None)
        if seconds is None:
            break
        pause(seconds)
    return found


def _urls(client: "DeviceFarmClient", run: str, category: Category, kind: str) -> list[str]:
    pages = client.get_paginator("list_artifacts").paginate(arn=run, type=category)
    return [item["url"] for page in pages for item in page["artifacts"] if item.get("type") == kind]


def _from_archives(account: Account, urls: Sequence[str], folder: Path, scratch: Path) -> str:
    """Unpack the results of the first archive that has any; return why there are none, empty when there are."""
    why = "the run has no customer artifacts, and nothing of results in the device's log"
    for number, url in enumerate(urls):
        archive = scratch / f"{number}.zip"
        try:
            _fetch(account, url, archive, LARGEST_ARCHIVE)
            unpack_results(archive, folder, account.where, FOLDER)
        except VerifyError as error:
            why = f"{error.why}; there is nothing of results in the device's log either"
        else:
            return ""
    return why


def _fetch_logs(account: Account, urls: Sequence[str], log: Path, scratch: Path) -> None:
    """Fetch what there is of logs: a run counts without them."""
    for number, url in enumerate(urls):
        part = scratch / f"{number}.log"
        with suppress(VerifyError):
            _fetch(account, url, part, LARGEST_LOG)
            append_log(part, log)


def _fetch(account: Account, url: str, path: Path, most_bytes: int) -> None:
    if not same_way(url, account.endpoint):
        raise missing(account.where, "AWS names an address that is not encrypted", "")
    fetch(url, path, most_bytes=most_bytes, pauses=account.patience.pauses, where=account.where)
