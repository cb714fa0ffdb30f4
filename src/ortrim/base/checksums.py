"""`SHA256SUMS`: digests of files and their paths as `sha256sum --check` reads them, and folders compared with them."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.base.files import sha256_of, storage_errors
from ortrim.errors import Diagnostic, DiagnosticGroup, PackageError


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


def checksums_text(entries: Iterable[FileEntry]) -> str:
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

    They differ in capitals or in how Unicode spells an accent alone, or one is a folder of the other.
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


MOST_TOLD: Final = 50  # how many differences of one folder are reported: after that it is clear that it is another one


def check_listed(folder: Path, kind: str, shown: str) -> dict[str, str]:
    """Return the digest of each file of a folder, which are exactly those that its `SHA256SUMS` lists.

    Links may lead to listed files. `kind` and `shown` are what the folder is and is called.
    """
    with storage_errors(folder):
        listed = _listed(folder, kind, shown)
        found = tuple(islice(chain(_differences(folder, listed), _unlisted(folder, listed)), MOST_TOLD))
    problems = tuple(_problem(code, kind, f"{shown}/{path}", why) for code, path, why in found)
    if problems:
        raise DiagnosticGroup(problems)
    return listed


def _listed(folder: Path, kind: str, shown: str) -> dict[str, str]:
    try:
        with (folder / SUMS).open("rb") as file:
            return parse_sums(file.read(LARGEST_SUMS + 1).decode())
    except FileNotFoundError:
        raise _problem("checksums-missing", kind, shown, f"it has no {SUMS}") from None
    except ValueError as error:
        raise _problem("checksums-damaged", kind, f"{shown}/{SUMS}", str(error)) from error


def _differences(folder: Path, listed: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    for path, digest in listed.items():
        file = folder / path
        if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
            yield "file-missing", path, f"{SUMS} lists it"
        elif (actual := sha256_of(file)) != digest:
            yield "digest-mismatch", path, f"expected {digest}\nactual   {actual}"


def _unlisted(folder: Path, listed: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield files that are not listed, and links unless they lead to a listed file."""
    known = {(folder / path).resolve() for path in listed} | {(folder / SUMS).resolve()}
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    for path in sorted(path.relative_to(folder).as_posix() for path in found if path.resolve() not in known):
        yield "unlisted-file", path, f"{SUMS} does not list it"


def _problem(code: str, kind: str, where: str, why: str) -> PackageError:
    hint = "unpack, fetch or build it again; do not use it before you know what changed it"
    return PackageError(code, f"the {kind} is damaged", where=where, why=why, hint=hint)


def check_sums(folder: Path) -> None:
    """Check that a package's folder holds exactly the files that its `SHA256SUMS` lists."""
    check_listed(folder, "package", str(folder))


def changed_since_made(folder: Path) -> str:
    """Say what of a package's folder is not as it was made, if anything is."""
    try:
        check_sums(folder)
    except Diagnostic as error:
        return f"{error.where} was changed since it was made"
    return ""
