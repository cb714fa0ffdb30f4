"""`SHA256SUMS`: the digests of a package's files, in the form that `sha256sum --check` reads."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import FileEntry
from ortrim.errors import DiagnosticGroup, PackageError
from ortrim.package.contents import is_inside
from ortrim.storage.files import sha256_of

SUMS: Final = "SHA256SUMS"
LINE: Final = re.compile(r"([0-9a-f]{64})  (.+)")
HINT: Final = "unpack or build the package again; do not use it before you know what changed it"


def sums_text(entries: Iterable[FileEntry]) -> str:
    """Return the content of `SHA256SUMS`, in order of the paths."""
    return "".join(f"{entry.sha256}  {entry.path}\n" for entry in sorted(entries, key=lambda entry: entry.path))


def check_sums(folder: Path) -> None:
    """Check that a package's folder holds exactly the files that its `SHA256SUMS` lists.

    Raises `PackageError` (`sums-missing`, `sums-damaged`) or, for all differences at once, a `DiagnosticGroup` of
    `file-missing`, `digest-mismatch` and `unlisted-file`.
    """
    listed = _listed(folder)
    problems = [problem for path, digest in listed.items() for problem in _differences(folder, path, digest)]
    problems += [
        _problem("unlisted-file", folder / path, f"{SUMS} does not list it") for path in _unlisted(folder, listed)
    ]
    if problems:
        raise DiagnosticGroup(tuple(problems))


def _listed(folder: Path) -> dict[str, str]:
    try:
        text = (folder / SUMS).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _problem("sums-missing", folder / SUMS, str(error)) from error
    listed = {}
    for number, line in enumerate(text.splitlines(), start=1):
        found = LINE.fullmatch(line)
        if not found or not is_inside(found[2]) or found[2] in listed:
            raise _problem("sums-damaged", folder / SUMS, f"line {number} is not a digest and a path: {line[:100]!r}")
        listed[found[2]] = found[1]
    if not listed:
        raise _problem("sums-damaged", folder / SUMS, "it lists no file")
    return listed


def _differences(folder: Path, path: str, digest: str) -> list[PackageError]:
    file = folder / path
    if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
        return [_problem("file-missing", file, f"{SUMS} lists it")]
    actual = sha256_of(file)
    return [] if actual == digest else [_problem("digest-mismatch", file, f"expected {digest}\nactual   {actual}")]


def _unlisted(folder: Path, listed: dict[str, str]) -> list[str]:
    """Return files that are not listed, and links unless they lead to a listed file."""
    known = {(folder / path).resolve() for path in listed} | {(folder / SUMS).resolve()}
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return sorted(path.relative_to(folder).as_posix() for path in found if path.resolve() not in known)


def _problem(reference: str, where: Path, why: str) -> PackageError:
    return PackageError(reference, "the package is damaged", where=str(where), why=why, hint=HINT)
