"""Deliveries of a run: an archive each, with packages, proof and one `SHA256SUMS` of all of them."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from ortrim.core.artifacts import FileEntry
from ortrim.core.sums import SUMS, parse_sums
from ortrim.errors import DiagnosticGroup, PackageError, StorageError
from ortrim.fetch.store import Store
from ortrim.github.artifacts import download_artifact
from ortrim.github.client import GitHub
from ortrim.github.records import Artifact, sha256_in
from ortrim.github.repositories import Repository
from ortrim.github.resuming import OnBytes
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.storage.folders import locked, remove_leftovers
from ortrim.storage.unpack import unpack


def delivered_files(store: Store, artifact: Artifact) -> tuple[FileEntry, ...]:
    """Return the files of a delivery that was fetched. Raises `StorageError` (`cache-damaged`) if they are gone."""
    entries = store.remembered(sha256_in(artifact.digest))
    if entries is None:
        what, hint = f"{artifact.name!r} was removed while it was read", "run the same command again"
        raise StorageError("cache-damaged", what, where=str(store.folder), hint=hint)
    return entries


def fetch_delivery(repository: Repository, artifact: Artifact, store: Store, client: GitHub, on_bytes: OnBytes) -> None:
    """Fetch a delivery, check its files and put them into the store; another process may do so at the same time.

    Raises as `download_artifact`, `unpack` and `checked_sums` do; then the store is as it was.
    """
    digest = sha256_in(artifact.digest)
    place = store.list_of(digest)
    with locked(place), storage_errors(place):
        if store.remembered(digest) is not None:
            return
        remove_leftovers(place)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.partial-") as work:
            archive, folder = Path(work) / "archive.zip", Path(work) / "files"
            download_artifact(client, repository, artifact, archive, on_bytes)
            unpack(archive, folder)
            store.remember(digest, store.adopt(folder, checked_sums(folder, artifact.name)))


def checked_sums(folder: Path, name: str) -> dict[str, str]:
    """Return the digests of a delivery's files, which are exactly those that its `SHA256SUMS` lists.

    Raises `PackageError` (`sums-missing`, `sums-damaged`), or for all differences at once a `DiagnosticGroup` of
    `file-missing`, `digest-mismatch` and `unlisted-file`.
    """
    try:
        listed = parse_sums((folder / SUMS).read_bytes().decode())
    except FileNotFoundError:
        raise _problem("sums-missing", name, f"it has no {SUMS}") from None
    except ValueError as error:
        raise _problem("sums-damaged", f"{name}/{SUMS}", str(error)) from error
    paths = (path for path in folder.rglob("*") if not path.is_dir() and path != folder / SUMS)
    there = {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths}
    problems = tuple(_differences(name, listed, there))
    if problems:
        raise DiagnosticGroup(problems)
    return listed


def _differences(name: str, listed: Mapping[str, str], there: Mapping[str, str]) -> Iterable[PackageError]:
    for path in sorted({*listed, *there}):
        where = f"{name}/{path}"
        if path not in there:
            yield _problem("file-missing", where, f"{SUMS} lists it")
        elif path not in listed:
            yield _problem("unlisted-file", where, f"{SUMS} does not list it")
        elif listed[path] != there[path]:
            yield _problem("digest-mismatch", where, f"expected {listed[path]}\nactual   {there[path]}")


def _problem(reference: str, where: str, why: str) -> PackageError:
    hint = "build it again; do not use it before you know what changed it"
    return PackageError(reference, "the delivery is damaged", where=where, why=why, hint=hint)
