"""A folder held against its `SHA256SUMS`."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Final

from ortrim.core.sums import LARGEST_SUMS, SUMS, parse_sums
from ortrim.errors import DiagnosticGroup, PackageError
from ortrim.storage.files import sha256_of, storage_errors

MOST_TOLD: Final = 50
"""How many differences of one folder are told: after that it is clear that it is another one."""


def check_listed(folder: Path, kind: str, shown: str) -> dict[str, str]:
    """Return the digest of each file of a folder, which are exactly those that its `SHA256SUMS` lists.

    Links may lead to listed files. `kind` and `shown` are what the folder is and is called. Raises `PackageError`
    (`sums-missing`, `sums-damaged`), for the first `MOST_TOLD` differences at once a `DiagnosticGroup` of
    `file-missing`, `digest-mismatch` and `unlisted-file`, and `StorageError`.
    """
    with storage_errors(folder):
        listed = _listed(folder, kind, shown)
        found = tuple(islice(chain(_differences(folder, listed), _unlisted(folder, listed)), MOST_TOLD))
    problems = tuple(_problem(reference, kind, f"{shown}/{path}", why) for reference, path, why in found)
    if problems:
        raise DiagnosticGroup(problems)
    return listed


def _listed(folder: Path, kind: str, shown: str) -> dict[str, str]:
    try:
        with (folder / SUMS).open("rb") as file:
            return parse_sums(file.read(LARGEST_SUMS + 1).decode())
    except FileNotFoundError:
        raise _problem("sums-missing", kind, shown, f"it has no {SUMS}") from None
    except ValueError as error:
        raise _problem("sums-damaged", kind, f"{shown}/{SUMS}", str(error)) from error


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


def _problem(reference: str, kind: str, where: str, why: str) -> PackageError:
    hint = "unpack, fetch or build it again; do not use it before you know what changed it"
    return PackageError(reference, f"the {kind} is damaged", where=where, why=why, hint=hint)
