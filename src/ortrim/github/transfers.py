"""Files from GitHub: nothing gets its name before its digest is right."""

import os
import tempfile
from pathlib import Path
from typing import IO

from ortrim.github.client import GitHub
from ortrim.github.resuming import OnBytes, Source, Transfer
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.storage.folders import locked, remove_leftovers


def silent(_done: int, _total: int) -> None:
    """Say nothing of how far a download is."""


def download(client: GitHub, source: Source, destination: Path, on_bytes: OnBytes = silent) -> None:
    """Fetch a file into `destination`, which appears only when its SHA-256 is right; one that is there already stays.

    After a cut it goes on where it was. Raises `NetworkError` (`artifact-digest-mismatch`, `download-failed`,
    `download-too-large`, or as `GitHub.get`) or `StorageError`; then nothing is left behind.
    """
    with locked(destination), storage_errors(destination):
        if destination.is_file() and sha256_of(destination) == source.sha256:
            return
        remove_leftovers(destination)
        prefix = f".{destination.name}.partial-"
        with tempfile.NamedTemporaryFile(dir=destination.parent, prefix=prefix, delete=False) as file:
            _fill_and_rename(Transfer(client, source, file, on_bytes), file, destination)


def _fill_and_rename(transfer: Transfer, file: IO[bytes], destination: Path) -> None:
    partial = Path(file.name)
    try:
        transfer.run()
        file.flush()
        os.fsync(file.fileno())
        file.close()  # Windows neither renames nor removes what is open
        partial.chmod(0o644)
        partial.replace(destination)
    finally:
        file.close()
        partial.unlink(missing_ok=True)
