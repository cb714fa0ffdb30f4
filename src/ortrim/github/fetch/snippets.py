"""A few lines for an app's own build, which fetch its runtime by address and digest or name what was fetched. Pure."""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ortrim.binaries.apple import XCFRAMEWORK
from ortrim.buildspec.buildspec import UNITY
from ortrim.errors import UsageError
from ortrim.github.fetch.placing import NAME, Lock
from ortrim.package.manifest import SYMBOLS

ENDINGS: Final = {"gradle": ".aar", "cmake": ".tar.gz", "spm": XCFRAMEWORK, "podfile": XCFRAMEWORK}
"""Which files a kind of snippet is about; for Apple, the zip of an xcframework, beside which others lie."""
PLACED: Final[Mapping[str, tuple[str, ...]]] = {
    "rust": ("archive",),
    "react-native": ("repository", "pods"),
    "flutter": ("repository", "pods", "archive"),
    "python": ("wheel",),
}
"""Kinds that name files in the folder of `fetch`, of a run as well, and which of `PARTS` each can use."""
KINDS: Final = (*ENDINGS, *PLACED)
PARTS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    "archive": (
        "a package for Linux",
        re.compile(r"ortrim-[\w.-]+-linux-[\w-]+-[0-9]+\.(?P<minor>[0-9]+)\.[0-9]+\.tar\.gz", re.ASCII),
    ),
    "repository": (
        "an AAR's Maven repository",
        re.compile(r"maven/ortrim/(?P<artifact>[\w.-]+)/(?P<version>[\w.-]+)/[\w.-]+\.aar", re.ASCII),
    ),
    "pods": (
        "an xcframework",
        re.compile(rf"onnxruntime/onnxruntime-(?P<version>[0-9.]+){re.escape(XCFRAMEWORK)}"),
    ),
    "wheel": (
        'a wheel (packages = ["wheel"] in the buildspec)',
        re.compile(r"wheel/(?P<module>ortrim_\w+)-[\w.-]+\.whl", re.ASCII),
    ),
}
"""What a delivery can have for an app: its words, and the path of its file."""
NEWEST_RUST_API: Final = 27
"""The newest version of the C API that has a feature in ort 2.0.0-rc.13."""
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


def require_kind(kind: str) -> None:
    """Raise `UsageError` (`snippet-kind`) unless a kind is one of `KINDS`."""
    if kind == UNITY:
        what, why = "no delivery has a package for Unity", "each is of one job, and that package is of all targets"
        hint = "make it where all targets are built: ortrim build --package unity (docs/start/unity.md)"
        raise UsageError("snippet-kind", what, where="--snippet", why=why, hint=hint)
    if kind not in KINDS:
        hint = f"known kinds: {', '.join(KINDS)}"
        raise UsageError("snippet-kind", f"{kind!r} is not a kind of snippet", where="--snippet", hint=hint)


def fetched_snippet(kind: str, lock: Lock, output: Path) -> str:
    """Return the text of a snippet of one of `KINDS` for the locked files, which are in the folder `output`."""
    if kind in PLACED:
        return _placed_snippet(kind, lock, output)
    return snippet(kind, snippet_files(lock))


def snippet(kind: str, offered: Sequence[SnippetFile]) -> str:
    """Return the text of a snippet of one kind, `gradle`, `cmake`, `spm` or `podfile`, for those files that it can use.

    Names are written as text whatever they hold.
    """
    packages = (file for file in offered if not file.name.endswith(SYMBOLS))
    wanted = tuple(_checked(file) for file in packages if file.name.endswith(ENDINGS[kind]))
    if not wanted:
        raise _none(kind, f"a {ENDINGS[kind]}", [file.name for file in offered])
    if kind in SINGLE and len(wanted) > 1:
        raise _several(kind, [file.name for file in wanted])
    version = VERSION.search(wanted[0].name)
    return _rendered(kind, {"files": wanted, "version": version[0] if version else "1.0.0"})


def _placed_snippet(kind: str, lock: Lock, output: Path) -> str:
    folder = output.as_posix()
    if shlex.quote(folder) != folder:
        what, hint = "the folder cannot be named in a snippet", "choose plain letters: --update --output DIR"
        raise UsageError("snippet-bad-file", what, where=repr(folder)[:200], hint=hint)
    paths = [file.path for file in lock.files]
    found: dict[str, re.Match[str] | None] = {}
    for part in PLACED[kind]:
        matches = list(filter(None, map(PARTS[part][1].fullmatch, paths)))
        if len(matches) > 1:
            raise _several(kind, [match[0] for match in matches])
        found[part] = matches[0] if matches else None
    if not any(found.values()):
        raise _none(kind, " or ".join(PARTS[part][0] for part in found), paths)
    from_android = folder if output.is_absolute() else f"../{folder}"
    return _rendered(kind, {**found, "output": folder, "from_android": from_android, "newest_api": NEWEST_RUST_API})


def _none(kind: str, wanted: str, there: Sequence[str]) -> UsageError:
    what = f"a snippet for {kind} is about {wanted}, and none is there"
    why = f"there is {', '.join(there) or 'nothing'}"
    return UsageError("snippet-no-file", what, where="--snippet", why=why)


def _several(kind: str, names: Sequence[str]) -> UsageError:
    what, hint = f"{kind} can take only one of {', '.join(names)}", "name one with --spec or --target"
    return UsageError("snippet-ambiguous", what, where="--snippet", hint=hint)


def _rendered(kind: str, values: Mapping[str, Any]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - slow to import

    environment = Environment(  # noqa: S701 - no HTML; each language has its own filter
        loader=PackageLoader("ortrim", "resources/fetch"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment.get_template(f"{kind}.j2").render(values)


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
