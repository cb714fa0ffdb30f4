"""`SHA256SUMS`: digests of files and their paths, in the form that `sha256sum --check` reads."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from ortrim.core.artifacts import FileEntry

SUMS: Final = "SHA256SUMS"
LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")
LONGEST_PATH: Final = 400


def sums_text(entries: Iterable[FileEntry]) -> str:
    """Return the content of `SHA256SUMS`, in order of the paths."""
    return "".join(f"{entry.sha256}  {entry.path}\n" for entry in sorted(entries, key=lambda entry: entry.path))


def parse_sums(text: str) -> dict[str, str]:
    """Return the digest of each path. Raises `ValueError`, with the line's number, for what is no such list."""
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
    return plain and not {"", ".", ".."} & set(parts) and str(PurePosixPath(text)) == text
