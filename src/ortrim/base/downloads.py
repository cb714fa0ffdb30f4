"""Downloads over HTTP(S), checked before they get their name.

- Addresses read at another place than they name: where a network reaches mirrors alone, and in tests. Pure.
"""

import hashlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import urljoin

import requests
from requests.exceptions import InvalidHeader, InvalidSchema, InvalidURL, MissingSchema, ProxyError, TooManyRedirects
from urllib3.exceptions import HTTPError

from ortrim.base.cache import locked, remove_leftovers
from ortrim.base.files import sha256_of, storage_errors
from ortrim.errors import NetworkError

ATTEMPTS: Final = 4
TIMEOUT_SECONDS: Final = 60
PATIENCE_SECONDS: Final = 60
LEAST_BYTES_A_SECOND: Final = 1024
"""What a server has to keep up, after `PATIENCE_SECONDS`, to be worth waiting for."""
CHUNK_BYTES: Final = 1 << 16
MAXIMUM_BYTES: Final = 8 << 30
HOPELESS: Final = (InvalidHeader, InvalidSchema, InvalidURL, MissingSchema, TooManyRedirects)
IDENTITY: Final = {"Accept-Encoding": "identity"}
"""Without this, an archive that a server labels as compressed in transit would arrive unpacked."""
PAGE: Final = (b"<!doctype html", b"<html")
LOGIN: Final = 407


def download(url: str, destination: Path, sha256: str) -> None:
    """Fetch `url` into `destination`, which appears only when its SHA-256 is the one given.

    A file that is already there with that digest is kept and nothing is fetched. Server errors, broken connections and
    links that bring almost nothing are tried again with growing pauses; a refusal (4xx) is not. Two processes that want
    the same file fetch it once. Raises `NetworkError` (`download-refused`, `download-failed`, `download-too-large`,
    `bad-address`, `digest-mismatch`) or `StorageError`.
    """
    fetch(url, destination, "sha256", sha256)


def fetch(url: str, destination: Path, algorithm: str, expected: str | None) -> None:
    """Do what `download` does, for any digest that `hashlib` knows, such as the SHA-1 that upstream publishes.

    Only those who make pins may pass no digest: then whatever comes is kept.
    """
    with locked(destination), storage_errors(destination):
        if destination.is_file() and _digest_of(destination, algorithm) == expected:
            return
        remove_leftovers(destination)
        prefix = f".{destination.name}.partial-"
        with tempfile.NamedTemporaryFile(dir=destination.parent, prefix=prefix, delete=False) as file:
            _fetch_into(url, file, destination, algorithm, expected)


def _fetch_into(url: str, file: IO[bytes], destination: Path, algorithm: str, expected: str | None) -> None:
    partial = Path(file.name)
    try:
        _check(url, _fetch(url, file, algorithm), expected, file)
        file.close()
        partial.chmod(0o644)
        partial.replace(destination)
    finally:
        partial.unlink(missing_ok=True)


def _check(url: str, actual: str, expected: str | None, file: IO[bytes]) -> None:
    if expected not in {actual, None}:
        why = f"expected {expected}\nactual   {actual}"
        hint = "the file at this address changed, or the pin is wrong; do not use it before you know which"
        file.seek(0)
        if file.read(1024).lstrip().lower().startswith(PAGE):
            why += "\nwhat came is a web page"
            hint = "open the address in a browser: a proxy, or a network that wants a login, may answer in its place"
        raise NetworkError("digest-mismatch", "the download is not what was pinned", where=url, why=why, hint=hint)


def _fetch(url: str, file: IO[bytes], algorithm: str) -> str:
    """Stream `url` into `file`, trying again where that can help; return the digest of what came."""
    for attempt in range(ATTEMPTS):
        try:
            return _fetch_once(url, file, algorithm)
        except HOPELESS as error:
            raise NetworkError("bad-address", "cannot be downloaded", where=url, why=str(error)) from error
        except requests.RequestException as error:
            _give_up_or_wait(url, error, attempt)
    raise AssertionError


def _give_up_or_wait(url: str, error: requests.RequestException, attempt: int) -> None:
    status = error.response.status_code if error.response is not None else 0
    if status == LOGIN or (isinstance(error, ProxyError) and f" {LOGIN} " in str(error)):
        hint = "name a user in the proxy's address: https_proxy=http://user:password@host:port, and http_proxy"
        what = f"the proxy answered {LOGIN}: it wants a login"
        raise NetworkError("download-refused", what, where=url, hint=hint) from error
    if 400 <= status < 500:
        raise NetworkError("download-refused", f"the server answered {status}", where=url) from error
    if attempt == ATTEMPTS - 1:
        what = f"the download failed {ATTEMPTS} times"
        hint = "check the network or the proxy settings, then run the same command again"
        raise NetworkError("download-failed", what, where=url, why=str(error), hint=hint) from error
    time.sleep(2**attempt)


def _fetch_once(url: str, file: IO[bytes], algorithm: str) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    file.seek(0)
    file.truncate()
    hooks = {"response": _stay_encrypted}
    with requests.get(url, stream=True, timeout=TIMEOUT_SECONDS, headers=IDENTITY, hooks=hooks) as response:
        response.raise_for_status()
        for chunk in pieces(response):
            digest.update(chunk)
            file.write(chunk)
            if file.tell() > MAXIMUM_BYTES:
                raise NetworkError("download-too-large", f"is larger than {MAXIMUM_BYTES} bytes", where=url)
    file.flush()
    return digest.hexdigest()


def pieces(response: requests.Response) -> Iterator[bytes]:
    """Yield a body as it comes, unpacked if the server packed it.

    Raises `requests.ConnectionError` for one that is cut, or brings less than `LEAST_BYTES_A_SECOND`: each byte is a
    sign of life, so that no timeout would end it.
    """
    started, count = time.monotonic(), 0
    while True:
        try:
            chunk = response.raw.read1(CHUNK_BYTES, decode_content=True)
        except HTTPError as error:
            raise requests.ConnectionError(str(error)) from error
        if not chunk:
            return
        count += len(chunk)
        if too_slow(count, seconds := time.monotonic() - started):
            raise requests.ConnectionError(f"no more than {count} bytes came within {seconds:.0f} seconds")
        yield chunk


def too_slow(count: int, seconds: float) -> bool:
    """Whether so many bytes in so many seconds are not worth waiting for."""
    return seconds > PATIENCE_SECONDS and count < LEAST_BYTES_A_SECOND * seconds


def _stay_encrypted(response: requests.Response, *_arguments: Any, **_options: Any) -> None:
    """Follow no redirect to where others could change what comes."""
    target = urljoin(response.url, response.headers.get("Location", ""))
    if response.is_redirect and response.url.startswith("https:") and not target.startswith("https:"):
        response.close()
        raise InvalidURL("the server sends us to an address that is not https")


def _digest_of(path: Path, algorithm: str) -> str:
    if algorithm == "sha256":
        return sha256_of(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


Mirrors = Sequence[tuple[str, str]]
"""Pairs: the beginning of an address, and what stands in its place."""


def mirrored(url: str, mirrors: Mirrors) -> str:
    """Return where an address is read: the first of the mirrors that fits counts."""
    for prefix, replacement in mirrors:
        if url.startswith(prefix):
            return replacement + url[len(prefix) :]
    return url
