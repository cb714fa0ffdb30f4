"""Downloads over HTTP(S), checked before they get their name."""

import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Final

import requests

from ortrim.errors import NetworkError

ATTEMPTS: Final = 4
TIMEOUT_SECONDS: Final = 60
CHUNK_BYTES: Final = 1 << 20


def download(url: str, destination: Path, sha256: str) -> None:
    """Fetch `url` into `destination`, which appears only when its SHA-256 is the one given.

    Server errors and broken connections are tried again with growing pauses; a refusal (4xx) is not.
    Raises `NetworkError` (`download-refused`, `download-failed`, `digest-mismatch`).
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.part-")
    os.close(descriptor)
    partial = Path(name)
    try:
        actual = _fetch(url, partial)
        if actual != sha256:
            why = f"expected {sha256}\nactual   {actual}"
            hint = "the file at this address changed, or the pin is wrong; do not use it before you know which"
            raise NetworkError("digest-mismatch", "the download is not what was pinned", where=url, why=why, hint=hint)
        partial.replace(destination)
    finally:
        partial.unlink(missing_ok=True)


def _fetch(url: str, partial: Path) -> str:
    """Stream `url` into `partial`, trying again where that can help; return the SHA-256 of what came."""
    for attempt in range(ATTEMPTS):
        try:
            return _fetch_once(url, partial)
        except requests.RequestException as error:
            status = error.response.status_code if error.response is not None else 0
            if 400 <= status < 500:
                raise NetworkError("download-refused", f"the server answered {status}", where=url) from error
            if attempt == ATTEMPTS - 1:
                what = f"the download failed {ATTEMPTS} times"
                hint = "check the network or the proxy settings, then run the same command again"
                raise NetworkError("download-failed", what, where=url, why=str(error), hint=hint) from error
            time.sleep(2**attempt)
    raise AssertionError


def _fetch_once(url: str, partial: Path) -> str:
    digest = hashlib.sha256()
    with requests.get(url, stream=True, timeout=TIMEOUT_SECONDS) as response:
        response.raise_for_status()
        with partial.open("wb") as file:
            for chunk in response.iter_content(CHUNK_BYTES):
                digest.update(chunk)
                file.write(chunk)
    return digest.hexdigest()
