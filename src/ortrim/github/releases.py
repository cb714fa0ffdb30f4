"""Releases and their files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ortrim.errors import NetworkError
from ortrim.github.artifacts import SHOWN_NAMES
from ortrim.github.client import GitHub
from ortrim.github.pages import everything
from ortrim.github.records import Asset, Release, parsed, sha256_in
from ortrim.github.repositories import Repository
from ortrim.github.resuming import OnBytes, Source
from ortrim.github.transfers import download

BYTES: Final = "application/octet-stream"
"""Without this the API describes a file instead of giving it."""


def get_release(client: GitHub, repository: Repository, tag: str = "") -> Release:
    """Return the release of a tag, or the latest that is neither a draft nor a pre-release.

    Raises `NetworkError` (`release-not-found`, or as `GitHub.get`).
    """
    path = f"{repository.path}/releases/" + (f"tags/{quote(tag, safe='')}" if tag else "latest")
    try:
        return parsed(Release, client.get(path), path)
    except NetworkError as error:
        if error.reference != "github-not-found":
            raise
        what = f"{repository} has no release of {tag[:200]!r}" if tag else f"{repository} has no release"
        raise NetworkError("release-not-found", what, where=path, why=error.why, hint=error.hint) from None


def list_assets(client: GitHub, repository: Repository, release: Release) -> tuple[Asset, ...]:
    """Return the files of a release."""
    path = f"{repository.path}/releases/{release.id}/assets"
    return everything(client, path, tuple[Asset, ...], tuple)


def choose_asset(assets: Sequence[Asset], name: str, release: Release) -> Asset:
    """Return the file of this name. Raises `NetworkError` (`asset-missing`), also for one whose upload is not over."""
    asset = next((asset for asset in assets if asset.name == name), None)
    if asset is None or asset.state != "uploaded":
        names = sorted(asset.name for asset in assets if asset.state == "uploaded")[:SHOWN_NAMES]
        why = f"it has: {', '.join(names)}" if names else "it has none"
        what = f"the release {release.tag_name} has no file {name!r}"
        raise NetworkError("asset-missing", what, where=release.html_url, why=why)
    return asset


def download_asset(
    client: GitHub,
    repository: Repository,
    asset: Asset,
    destination: Path,
    *,
    sha256: str = "",
    on_bytes: OnBytes = lambda _done, _total: None,
) -> None:
    """Fetch a file of a release; `sha256` is what a lock file or `SHA256SUMS` says it is, and then counts alone.

    Raises `NetworkError`: `artifact-no-digest` when neither says, or as `transfers.download`.
    """
    path = f"{repository.path}/releases/assets/{asset.id}"
    expected = sha256 or sha256_in(asset.digest)
    if not expected:
        what = f"nobody gives a SHA-256 of {asset.name!r}, so that it cannot be checked"
        raise NetworkError("artifact-no-digest", what, where=path)
    source = Source(path=path, sha256=expected, accept=BYTES, size=asset.size)
    download(client, source, destination, on_bytes)
