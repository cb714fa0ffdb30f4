"""Archives of files and their `SHA256SUMS`: deliveries of a run, and what a release has of their folders."""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ortrim.core.delivery import FACTS, DeliveryFacts
from ortrim.core.serialization import from_json
from ortrim.core.sums import SUMS, FileEntry, first_clash
from ortrim.errors import PackageError, StorageError
from ortrim.fetch.lock import LockedArtifact
from ortrim.fetch.store import Store
from ortrim.github.artifacts import download_artifact
from ortrim.github.client import GitHub
from ortrim.github.records import Artifact, sha256_in
from ortrim.github.repositories import Repository
from ortrim.github.resuming import OnBytes
from ortrim.storage.files import storage_errors
from ortrim.storage.folders import locked, remove_leftovers
from ortrim.storage.sums import check_listed
from ortrim.storage.unpack import unpack

MOST_FACTS: Final = 4096


def delivered_files(store: Store, archive: LockedArtifact) -> tuple[FileEntry, ...]:
    """Return the files of an archive that was fetched. Raises `StorageError` (`cache-damaged`) if they are gone."""
    entries = store.remembered(archive.sha256)
    if entries is None:
        what, hint = f"{archive.name!r} was removed while it was read", "run the same command again"
        raise StorageError("cache-damaged", what, where=str(store.folder), hint=hint)
    return entries


def all_files(
    store: Store, archives: Iterable[LockedArtifact], single: Iterable[FileEntry], page: str
) -> tuple[FileEntry, ...]:
    """Return single files and those of archives that were fetched, but for what deliveries say of themselves.

    Raises `PackageError` (`name-twice`) where not every file system could hold them side by side, and as
    `delivered_files`.
    """
    fetched = (delivered_files(store, archive) for archive in archives)
    entries = {entry for each in (single, *fetched) for entry in each if entry.path != FACTS}
    found = tuple(sorted(entries, key=attrgetter("path")))
    if clash := first_clash([SUMS, *(entry.path for entry in found)]):
        one, other = clash
        twice = f"two deliveries have a file {one!r}"
        what = twice if one == other else f"not every file system can hold their files {one!r} and {other!r}"
        raise PackageError("name-twice", what, where=page, hint="fetch one of them: --spec, --target")
    return found


def made_of(store: Store, artifact: LockedArtifact) -> str:
    """Return the commit that a delivery in the store was made of.

    Raises `PackageError` (`delivery-without-commit`) and as `delivered_files`.
    """
    facts = next((entry for entry in delivered_files(store, artifact) if entry.path == FACTS), None)
    if facts is not None and facts.size_bytes <= MOST_FACTS:
        path = store.path_of(facts.sha256)
        with storage_errors(path), suppress(ValidationError):
            if commit := from_json(DeliveryFacts, path.read_bytes()).commit:
                return commit
    what, hint = "the delivery does not say which commit it was made of", "build it again with today's build.yml"
    raise PackageError("delivery-without-commit", what, where=f"{artifact.name}/{FACTS}", hint=hint)


def fetch_delivery(repository: Repository, artifact: Artifact, store: Store, client: GitHub, on_bytes: OnBytes) -> None:
    """Fetch a delivery into the store. Raises as `download_artifact` and `fetch_archive` do."""
    download = partial(download_artifact, client, repository, artifact, on_bytes=on_bytes)
    fetch_archive(store, artifact.name, sha256_in(artifact.digest), download)


def fetch_archive(store: Store, name: str, sha256: str, download: Callable[[Path], object]) -> None:
    """Download an archive, check its files and put them into the store; another process may do so at the same time.

    `sha256` is what `download` checks. Raises as that, `unpack` and `check_listed` do, and `StorageError`
    (`unsafe-archive`) for an archive with links, which would be links of the store; then the store is as it was.
    """
    place = store.list_of(sha256)
    with locked(place), storage_errors(place):
        if store.remembered(sha256) is not None:
            return
        remove_leftovers(place)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.partial-") as work:
            archive, folder = Path(work) / "archive.zip", Path(work) / "files"
            download(archive)
            unpack(archive, folder)
            _refuse_links(folder, name)
            store.remember(sha256, store.adopt(folder, check_listed(folder, "delivery", name)))


def _refuse_links(folder: Path, name: str) -> None:
    if link := next((path for path in folder.rglob("*") if path.is_symlink()), None):
        what, hint = f"holds the link {link.relative_to(folder).as_posix()[:200]!r}", "no delivery of ortrim's has one"
        raise StorageError("unsafe-archive", what, where=name, hint=hint)
