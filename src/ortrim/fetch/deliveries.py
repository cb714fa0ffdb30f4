"""Deliveries of a run: an archive each, with packages, proof and one `SHA256SUMS` of all of them."""

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ortrim.core.artifacts import FileEntry
from ortrim.core.delivery import FACTS, DeliveryFacts
from ortrim.core.serialization import from_json
from ortrim.errors import PackageError, StorageError
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


def delivered_files(store: Store, artifact: Artifact) -> tuple[FileEntry, ...]:
    """Return the files of a delivery that was fetched. Raises `StorageError` (`cache-damaged`) if they are gone."""
    entries = store.remembered(sha256_in(artifact.digest))
    if entries is None:
        what, hint = f"{artifact.name!r} was removed while it was read", "run the same command again"
        raise StorageError("cache-damaged", what, where=str(store.folder), hint=hint)
    return entries


def made_of(store: Store, artifact: Artifact) -> str:
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
    """Fetch a delivery, check its files and put them into the store; another process may do so at the same time.

    Raises as `download_artifact`, `unpack` and `check_listed` do, and `StorageError` (`unsafe-archive`) for an archive
    with links, which would be links of the store; then the store is as it was.
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
            _refuse_links(folder, artifact.name)
            store.remember(digest, store.adopt(folder, check_listed(folder, "delivery", artifact.name)))


def _refuse_links(folder: Path, name: str) -> None:
    if link := next((path for path in folder.rglob("*") if path.is_symlink()), None):
        what, hint = f"holds the link {link.relative_to(folder).as_posix()[:200]!r}", "no delivery of ortrim's has one"
        raise StorageError("unsafe-archive", what, where=name, hint=hint)
