"""Downloads over HTTP(S), checked before they get their name, and the mirrors that a site names."""

import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from ortrim.base import certificates
from ortrim.base.cache import locked, remove_leftovers
from ortrim.base.files import sha256_of, storage_errors
from ortrim.base.http import (
    LOGIN,
    BadAddress,
    Response,
    TransportError,
    UntrustedCertificate,
    chunks,
    opened_at_last,
)
from ortrim.errors import NetworkError, UsageError

ATTEMPTS: Final = 4
MAXIMUM_BYTES: Final = 8 << 30
PARTIAL: Final = 206
UNCHANGED: Final = 304
PAGE: Final = (b"<!doctype html", b"<html")


def download(url: str, destination: Path, sha256: str) -> None:
    """Fetch `url` into `destination`, which appears only when its SHA-256 is the one given.

    A file that is there with that digest is kept. Server errors, broken and stalled connections are tried again, from
    where they broke off if the server can; a refusal (4xx) is not. Two processes fetch the same file once.
    """
    fetch(url, destination, "sha256", sha256)


def fetch(url: str, destination: Path, algorithm: str, expected: str | None) -> None:
    """Do what `download` does for any digest of `hashlib`; who makes pins passes None, and keeps what comes."""
    with locked(destination), storage_errors(destination):
        if destination.is_file() and digest_of(destination, algorithm) == expected:
            return
        with arriving(destination) as file:
            _fetch(url, file)
            file.flush()
            _check(url, digest_of(Path(file.name), algorithm), expected, file)


def fetch_unless(etag: str, url: str, destination: Path) -> str | None:
    """Fetch what is at `url` unless its ETag is still this one, which is None then; return the new ETag.

    An empty ETag, of a server that has none, is never the same.
    """
    with locked(destination), storage_errors(destination), arriving(destination) as file:
        return _fetch(url, file, etag)


@contextmanager
def arriving(destination: Path) -> Iterator[IO[bytes]]:
    """Give a file that gets its name when the block ends well, and is gone otherwise; the caller holds its lock."""
    remove_leftovers(destination)
    prefix = f".{destination.name}.partial-"
    with tempfile.NamedTemporaryFile(dir=destination.parent, prefix=prefix, delete=False) as file:
        partial = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()  # Windows neither renames nor removes what is open
            partial.chmod(0o644)
            partial.replace(destination)
        finally:
            file.close()
            partial.unlink(missing_ok=True)


def _check(url: str, actual: str, expected: str | None, file: IO[bytes]) -> None:
    if expected not in {actual, None}:
        why = f"expected {expected}\nactual   {actual}"
        hint = "the file at this address changed, or the pin is wrong; do not use it before you know which one"
        file.seek(0)
        if file.read(1024).lstrip().lower().startswith(PAGE):
            why += "\na web page was received"
            hint = "open the URL in a browser: a proxy, or a network that requires a login, may answer instead"
        raise NetworkError("digest-mismatch", "the download is not what was pinned", where=url, why=why, hint=hint)


def _fetch(url: str, file: IO[bytes], etag: str = "") -> str | None:
    """Stream `url` into `file`, trying again where that can help; return its ETag, None if it still has this one."""
    begun = ""
    unless = {"If-None-Match": etag} if etag else {}
    for attempt in range(ATTEMPTS):
        try:
            with opened_at_last(url, headers={**unless, **_from_where_it_broke_off(file, begun)}) as response:
                if etag and response.status_code == UNCHANGED:
                    return None
                begun = _receive(response, file)
                _append(url, response, file)
                return response.headers.get("ETag", "")
        except TransportError as failed:
            _give_up_or_wait(url, failed, attempt)
    raise AssertionError


def _from_where_it_broke_off(file: IO[bytes], begun: str) -> dict[str, str]:
    """Return the headers that ask for the rest of a file, if it is still the one of which `begun` is the mark."""
    return {"Range": f"bytes={file.tell()}-", "If-Range": begun} if begun and file.tell() else {}


def _receive(response: Response, file: IO[bytes]) -> str:
    """Put `file` to where the answer goes on, and return the server's mark of this file, empty for none."""
    if not response.ok:
        raise TransportError(f"the server answered {response.status_code}", status=response.status_code)
    rest = response.headers.get("Content-Range", "").startswith(f"bytes {file.tell()}-")
    if response.status_code != PARTIAL:
        file.seek(0)
        file.truncate()
    elif not rest:
        file.seek(0)
        file.truncate()
        raise TransportError("the server sent another part than was asked for")
    mark = response.headers.get("ETag", "")
    return "" if mark.startswith("W/") or "Content-Encoding" in response.headers else mark


def _give_up_or_wait(url: str, failed: TransportError, attempt: int) -> None:
    if isinstance(failed, BadAddress):
        raise NetworkError("bad-address", "cannot be downloaded", where=url, why=str(failed))
    if isinstance(failed, UntrustedCertificate):
        raise certificates.untrusted(url, str(failed))
    if failed.status == LOGIN:
        hint = "name a user in the proxy's address: https_proxy=http://user:password@host:port, and http_proxy"
        what = f"the proxy answered {LOGIN}: it requires a login"
        raise NetworkError("download-refused", what, where=url, hint=hint)
    if 400 <= failed.status < 500:
        raise NetworkError("download-refused", str(failed), where=url)
    if attempt == ATTEMPTS - 1:
        what = f"the download failed {ATTEMPTS} times"
        hint = "check the network or the proxy settings, then run the same command again"
        raise NetworkError("download-failed", what, where=url, why=str(failed), hint=hint)
    time.sleep(2**attempt)


def _append(url: str, response: Response, file: IO[bytes]) -> None:
    for chunk in chunks(response, unpacked=True):
        file.write(chunk)
        if file.tell() > MAXIMUM_BYTES:
            raise NetworkError("download-too-large", f"is larger than {MAXIMUM_BYTES} bytes", where=url)


def digest_of(path: Path, algorithm: str) -> str:
    """Return the digest of a file in hexadecimal, by any algorithm that `hashlib` knows."""
    if algorithm == "sha256":
        return sha256_of(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


MIRRORS_VARIABLE: Final = "ORTRIM_MIRRORS"
Mirrors = Sequence[tuple[str, str]]
"""Pairs: the beginning of an address, and what stands in its place."""


def mirrored(url: str, mirrors: Mirrors) -> str:
    """Return where an address is read: the first of the mirrors that fits counts."""
    for prefix, replacement in mirrors:
        if url.startswith(prefix):
            return replacement + url[len(prefix) :]
    return url


def mirrors_in(text: str, where: str) -> Mirrors:
    """Return the mirrors that a text names: words of the form FROM=TO."""
    pairs = [word.partition("=") for word in text.split()]
    for prefix, found, replacement in pairs:
        if not (prefix and found and replacement):
            what = f"{prefix + found + replacement!r} is not of the form FROM=TO"
            raise UsageError(
                "bad-option", what, where=where, hint="for example https://github.com/=https://mirror.example/"
            )
    return tuple((prefix, replacement) for prefix, _, replacement in pairs)


def site_mirrors() -> Mirrors:
    """Return the mirrors that this site names in `ORTRIM_MIRRORS`."""
    return mirrors_in(os.environ.get(MIRRORS_VARIABLE, ""), MIRRORS_VARIABLE)
