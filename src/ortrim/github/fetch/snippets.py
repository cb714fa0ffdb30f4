"""A few lines for an app's own build that fetch its runtime by address and digest, and need nothing of ours. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final
from urllib.parse import quote, urlsplit

from ortrim.binaries.apple import XCFRAMEWORK
from ortrim.errors import UsageError
from ortrim.github.fetch.placing import NAME, Lock
from ortrim.package.manifest import SYMBOLS

ENDINGS: Final = {"gradle": ".aar", "cmake": ".tar.gz", "spm": XCFRAMEWORK, "podfile": XCFRAMEWORK}
"""Which files a kind of snippet is about; for Apple, the zip of an xcframework, beside which others lie."""
SINGLE: Final = ("cmake", "spm", "podfile")
"""Kinds in which two files would be two libraries of one name."""
SHA256: Final = re.compile(r"[0-9a-f]{64}")
VERSION: Final = re.compile(r"(?<![0-9.])[0-9]+\.[0-9]+\.[0-9]+(?![0-9])")
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
SAFE_IN_ADDRESS: Final = ":/?#@!&=+,~%-._[]"
"""Characters of an address that stay as they are; the others mean something to a build system and are written `%24`."""


@dataclass(frozen=True, kw_only=True)
class SnippetFile:
    """One file to fetch: its name, where it is, its SHA-256, and its size in bytes."""

    name: str
    url: str
    sha256: str
    size_bytes: int


def snippet(kind: str, offered: Sequence[SnippetFile]) -> str:
    """Return the text of a snippet of one kind, `gradle`, `cmake`, `spm` or `podfile`, for those files that it can use.

    Names are written as text whatever they hold.
    """
    if kind not in ENDINGS:
        hint = f"known kinds: {', '.join(ENDINGS)}"
        raise UsageError("snippet-kind", f"{kind!r} is not a kind of snippet", where="--snippet", hint=hint)
    packages = (file for file in offered if not file.name.endswith(SYMBOLS))
    wanted = tuple(_checked(file) for file in packages if file.name.endswith(ENDINGS[kind]))
    if not wanted:
        names = ", ".join(file.name for file in offered) or "nothing"
        what = f"a snippet for {kind} is about a {ENDINGS[kind]}, and none is there"
        raise UsageError("snippet-no-file", what, where="--snippet", why=f"there is {names}")
    if kind in SINGLE and len(wanted) > 1:
        names, hint = ", ".join(file.name for file in wanted), "name one with --target"
        raise UsageError("snippet-ambiguous", f"{kind} can take only one of {names}", where="--snippet", hint=hint)
    return _rendered(kind, wanted)


def _rendered(kind: str, wanted: tuple[SnippetFile, ...]) -> str:
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - slow to import

    template = (files("ortrim") / "resources" / "fetch" / f"{kind}.j2").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, autoescape=False)  # noqa: S701 - no HTML; each language has its own filter
    environment.filters.update(FILTERS)
    version = VERSION.search(wanted[0].name)
    return environment.from_string(template).render(files=wanted, version=version[0] if version else "1.0.0")


def _checked(file: SnippetFile) -> SnippetFile:
    """Return a file with its address encoded, when all of it is as it should be."""
    if not file.name.isprintable() or not file.name.strip(" .") or set(file.name) & set("/\\:"):
        raise _bad(file, "its name is not a plain file name")
    if not SHA256.fullmatch(file.sha256):
        raise _bad(file, f"{file.sha256[:80]!r} is not a SHA-256")
    if file.size_bytes <= 0:
        raise _bad(file, f"{file.size_bytes:,} is not a size in bytes")
    return SnippetFile(name=file.name, url=_address(file), sha256=file.sha256, size_bytes=file.size_bytes)


def _address(file: SnippetFile) -> str:
    try:
        parts = urlsplit(file.url)
        host, login = parts.hostname, parts.username or parts.password
    except ValueError as error:
        raise _bad(file, "its address is not valid") from error
    plain = parts.scheme == "http" and host in LOOPBACK
    if not host or login or not file.url.isprintable() or " " in file.url or not (parts.scheme == "https" or plain):
        raise _bad(file, "its address is not an HTTPS address without a login")
    return quote(file.url, safe=SAFE_IN_ADDRESS)


def _bad(file: SnippetFile, why: str) -> UsageError:
    return UsageError("snippet-bad-file", "a file cannot be named in a snippet", where=repr(file.name)[:200], why=why)


def _single_quoted(text: str) -> str:
    """Return a text as a string of Groovy or Ruby in which nothing is replaced."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _double_quoted(text: str) -> str:
    """Return a text as a string of Swift; the backslash that would begin code is escaped too."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _bracketed(text: str) -> str:
    """Return a text as an argument of CMake in which nothing is replaced."""
    mark = "="
    while f"]{mark}]" in f"{text}]":
        mark += "="
    return f"[{mark}[{text}]{mark}]"


FILTERS: Final[dict[str, Callable[[str], str]]] = {
    "single": _single_quoted,
    "double": _double_quoted,
    "bracket": _bracketed,
}


def snippet_files(lock: Lock) -> tuple[SnippetFile, ...]:
    """Return the files of a locked release, but for those in archives, with the addresses of GitHub's pages."""
    origin = lock.origin
    if not origin.release:
        what, hint = f"{NAME} names a run", "make a release, then: invoke fetch --update --release TAG"
        why = "artifacts of a run need a token and expire"
        raise UsageError("snippet-needs-release", what, where="--snippet", why=why, hint=hint)
    base = f"https://{origin.host}/{origin.repository}/releases/download/{quote(origin.release, safe='')}"
    return tuple(
        SnippetFile(name=file.path, url=f"{base}/{quote(file.path)}", sha256=file.sha256, size_bytes=file.size)
        for file in lock.files
        if "/" not in file.path
    )
