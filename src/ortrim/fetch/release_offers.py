"""What a release has of what is wanted: files whose digests its `SHA256SUMS` says, some of them archives of folders."""

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ortrim.core.delivery import FOLDERS
from ortrim.core.sums import LARGEST_SUMS, SUMS, FileEntry, first_clash, parse_sums
from ortrim.errors import NetworkError, PackageError
from ortrim.fetch.deliveries import all_files, fetch_archive
from ortrim.fetch.lock import LockedArtifact
from ortrim.fetch.names import Selection, wanted_assets
from ortrim.fetch.side_by_side import Download
from ortrim.fetch.store import Store
from ortrim.github.client import GitHub
from ortrim.github.commits import commit_of_tag
from ortrim.github.records import Asset, Release, sha256_in
from ortrim.github.releases import choose_asset, download_asset, get_release, list_assets
from ortrim.github.repositories import Repository
from ortrim.github.resuming import OnBytes


@dataclass(frozen=True, kw_only=True)
class ReleaseOffer:
    """Files of a release, the commit of whose tag is `tagged`.

    The SHA-256 of each is that of the release's `SHA256SUMS`.
    """

    repository: Repository
    release: Release
    tagged: str
    assets: tuple[tuple[FileEntry, Asset], ...]

    @property
    def page(self) -> str:
        """Where people see the release."""
        return self.release.html_url

    @property
    def words(self) -> str:
        """Which release it is."""
        return f"release {self.release.tag_name}" + (", a pre-release" if self.release.prerelease else "")

    @property
    def artifacts(self) -> tuple[LockedArtifact, ...]:
        """The archives that hold the folders of deliveries, as a lock file names them."""
        archives = (entry for entry, _ in self.assets if entry.path.endswith(FOLDERS))
        return tuple(LockedArtifact(name=entry.path, sha256=entry.sha256) for entry in archives)

    def downloads(self, store: Store) -> tuple[Download, ...]:
        """Return what is not in the store yet, each content once."""
        by_digest = {entry.sha256: (entry, asset) for entry, asset in self.assets}
        archives = {archive.sha256 for archive in self.artifacts}
        single = (entry for entry, _ in by_digest.values() if entry.sha256 not in archives)
        missing = {entry.sha256 for entry in store.missing(single)}
        missing |= {sha256 for sha256 in archives if store.remembered(sha256) is None}
        return tuple(
            Download(
                name=asset.name, size_bytes=asset.size, run=partial(_fetch, self.repository, (entry, asset), store)
            )
            for sha256, (entry, asset) in by_digest.items()
            if sha256 in missing
        )

    def commit(self, _store: Store) -> str:
        """Return the commit of the tag."""
        return self.tagged

    def files(self, store: Store) -> tuple[FileEntry, ...]:
        """Return the files, with those of archives, which are in the store. Raises as `all_files`."""
        single = (entry for entry, _ in self.assets if not entry.path.endswith(FOLDERS))
        return all_files(store, self.artifacts, single, self.page)


def look_up_release(client: GitHub, repository: Repository, tag: str, selection: Selection) -> ReleaseOffer:
    """Find out what a release has.

    Raises `NetworkError` (`release-not-found`, `tag-not-found`, `asset-missing`, `artifact-no-digest`, or as
    `GitHub.get`), `PackageError` (`sums-damaged`, `name-twice`, `digest-mismatch` where GitHub and `SHA256SUMS`
    differ) and `UsageError` (`nothing-to-fetch`).
    """
    release = get_release(client, repository, tag)
    assets = list_assets(client, repository, release)
    listed = _sums(client, repository, choose_asset(assets, SUMS, release))
    names = wanted_assets(listed, selection, release.html_url)
    if clash := first_clash([SUMS, *names]):
        what = f"not every file system can hold its files {clash[0]!r} and {clash[1]!r}"
        raise PackageError("name-twice", what, where=release.html_url)
    chosen = [choose_asset(assets, name, release) for name in names]
    return ReleaseOffer(
        repository=repository,
        release=release,
        tagged=commit_of_tag(client, repository, tag),
        assets=tuple((_entry(asset, listed[asset.name], release), asset) for asset in chosen),
    )


def _sums(client: GitHub, repository: Repository, asset: Asset) -> dict[str, str]:
    where = asset.name
    if asset.size > LARGEST_SUMS:
        raise PackageError("sums-damaged", f"has {asset.size:,} bytes, which no such list has", where=where)
    with tempfile.TemporaryDirectory(prefix="ortrim-sums-") as work:
        path = Path(work) / SUMS
        download_asset(client, repository, asset, path)
        try:
            return parse_sums(path.read_bytes().decode())
        except ValueError as error:
            what = "the release's list of digests cannot be read"
            raise PackageError("sums-damaged", what, where=where, why=str(error)) from error


def _entry(asset: Asset, sha256: str, release: Release) -> FileEntry:
    known = sha256_in(asset.digest)
    if known and known != sha256:
        what = f"GitHub has another {asset.name!r} than {SUMS} of the release says"
        why, hint = f"{SUMS:10} {sha256}\n{'GitHub':10} {known}", "do not use it before you know who replaced it"
        raise PackageError("digest-mismatch", what, where=release.html_url, why=why, hint=hint)
    return FileEntry(path=asset.name, size_bytes=asset.size, sha256=sha256)


def _fetch(
    repository: Repository, wanted: tuple[FileEntry, Asset], store: Store, client: GitHub, on_bytes: OnBytes
) -> None:
    """Fetch a file into the store, or those of an archive."""
    entry, asset = wanted
    download = partial(download_asset, client, repository, asset, sha256=entry.sha256, on_bytes=on_bytes)
    if entry.path.endswith(FOLDERS):
        fetch_archive(store, asset.name, entry.sha256, download)
        return
    download(store.path_of(entry.sha256))
    if not store.has(entry):
        what = f"{asset.name!r} has another size than GitHub says"
        raise NetworkError("artifact-digest-mismatch", what, where=str(repository))
