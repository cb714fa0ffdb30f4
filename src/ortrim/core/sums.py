"""`SHA256SUMS`: digests of files and their paths, in the form that `sha256sum --check` reads."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file of a package: its path inside it, size in bytes and SHA-256."""

    path: str
    size_bytes: int
    sha256: str


SUMS: Final = "SHA256SUMS"
LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")
LONGEST_PATH: Final = 400
LARGEST_SUMS: Final = 4 << 20
MOST_FILES: Final = 5_000
DEVICE: Final = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9¹²³]) *(?:\..*)?", re.IGNORECASE)
"""https://learn.microsoft.com/windows/win32/fileio/naming-a-file."""
GIT: Final = (".git", "git~1")
"""Git's own folder, also by its short name on Windows: git runs programs that the configuration in it names."""


def sums_text(entries: Iterable[FileEntry]) -> str:
    """Return the content of `SHA256SUMS`, in order of the paths."""
    return "".join(f"{entry.sha256}  {entry.path}\n" for entry in sorted(entries, key=lambda entry: entry.path))


def parse_sums(text: str) -> dict[str, str]:
    """Return the digest of each path. Raises `ValueError`, with the line's number, for what is no such list."""
    if len(text) > LARGEST_SUMS:
        raise ValueError(f"it is larger than {LARGEST_SUMS:,} bytes")
    if text.count("\n") > MOST_FILES:
        raise ValueError(f"it lists more than {MOST_FILES:,} files")
    listed: dict[str, str] = {}
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        found = LINE.fullmatch(line)
        if not found or not is_plain_path(found[2]) or found[2] in {SUMS, *listed}:
            raise ValueError(f"line {number} is not a digest and a path: {line[:100]!r}")
        listed[found[2]] = found[1]
    if not listed or not text.endswith("\n"):
        raise ValueError("it lists no file, or was cut short")
    return listed


def is_plain_path(text: str) -> bool:
    """Whether a path stays in its folder on every system and is what it looks like: no `..`, no control characters."""
    parts = text.split("/")
    plain = len(text) <= LONGEST_PATH and text.isprintable() and not set(text) & set('\\:*?"<>|')
    return plain and all(map(_is_plain_part, parts)) and str(PurePosixPath(text)) == text


def _is_plain_part(part: str) -> bool:
    """Whether a name means itself everywhere: Windows drops dots and spaces at its end, and has names for devices."""
    return part.rstrip(". ") == part != "" and part.casefold() not in GIT and DEVICE.fullmatch(part) is None


def first_clash(paths: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two of some paths that not every file system can hold side by side; None when there are none.

    They are the same but for capitals and for how Unicode spells an accent, or one is a folder of the other; so are
    folders whose names are twins.
    """
    known: dict[str, tuple[str, str]] = {}
    for path in paths:
        parents = (path[:place] for place, character in enumerate(path) if character == "/")
        for here in (*parents, path):
            twin = known.get(_folded(here))
            if twin is None:
                known[_folded(here)] = here, path
            elif here == path or twin[0] == twin[1] or twin[0] != here:
                return twin[1], path
    return None


def _folded(text: str) -> str:
    """Return what two names have in common that a file system may take for one: Unicode's canonical caseless match."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
