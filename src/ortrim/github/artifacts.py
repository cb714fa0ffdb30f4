"""Artifacts: what a run left.

- Attestations of where a file comes from, as GitHub keeps them.
- Releases and their files.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ortrim.base.archives import unpack
from ortrim.base.cache import publish_folder
from ortrim.base.files import storage_errors
from ortrim.errors import NetworkError
from ortrim.github.client import GitHub, everything
from ortrim.github.downloads import OnBytes, Source, download, silent
from ortrim.github.records import Artifact, ArtifactPage, Asset, Release, Run, parsed, sha256_in
from ortrim.github.repositories import Repository
from ortrim.github.runs import run_path

SHOWN_NAMES: Final = 20


def list_artifacts(client: GitHub, repository: Repository, run_id: int) -> tuple[Artifact, ...]:
    """Return the artifacts of a run, the expired ones among them."""
    return everything(client, f"{run_path(repository, run_id)}/artifacts", ArtifactPage, attrgetter("artifacts"))


def choose_artifact(artifacts: Sequence[Artifact], name: str, run: Run) -> Artifact:
    """Return the artifact of this name, the newest where a repeated run left several.

    Raises `NetworkError`: `artifact-missing` (names those there are) and `artifact-expired`.
    """
    found = [artifact for artifact in artifacts if artifact.name == name]
    if not found:
        names = sorted({artifact.name for artifact in artifacts})[:SHOWN_NAMES]
        why = f"it has: {', '.join(names)}" if names else "it has none"
        raise NetworkError("artifact-missing", f"the run has no artifact {name!r}", where=run.html_url, why=why)
    artifact = max(found, key=attrgetter("id"))
    if artifact.expired:
        raise expired(artifact, run.html_url)
    return artifact


def download_artifact(
    client: GitHub, repository: Repository, artifact: Artifact, destination: Path, on_bytes: OnBytes = silent
) -> None:
    """Fetch an artifact as it is stored, mostly a zip archive, which nobody but `unpack` should unpack.

    Raises `NetworkError`: `artifact-expired`, `artifact-missing` (deleted since), `artifact-no-digest`, or as
    `download`; needs a token, also for public repositories.
    """
    path = f"{repository.path}/actions/artifacts/{artifact.id}/zip"
    client.require_token(path)
    sha256 = sha256_in(artifact.digest)
    if not sha256:
        hint = "have the workflow use actions/upload-artifact v4 or newer"
        what = f"GitHub gives no SHA-256 of {artifact.name!r}, so that it cannot be checked"
        raise NetworkError("artifact-no-digest", what, where=path, hint=hint)
    source = Source(path=path, sha256=sha256, size=artifact.size_in_bytes)
    try:
        download(client, source, destination, on_bytes)
    except NetworkError as error:
        if error.code == "github-gone":
            raise expired(artifact, path) from None
        if error.code == "github-not-found":
            what = f"{artifact.name!r} no longer exists"
            raise NetworkError("artifact-missing", what, where=path, why=error.why) from None
        raise


def fetch_artifact(
    client: GitHub, repository: Repository, artifact: Artifact, folder: Path, on_bytes: OnBytes = silent
) -> bool:
    """Fetch an artifact and unpack it into `folder`, which appears only when it is complete.

    Returns False, without asking anybody, when the folder is there. Raises as `download_artifact` and `unpack` do; then
    nothing is left behind.
    """
    return publish_folder(folder, partial(_fill, client, repository, artifact, on_bytes))


def _fill(client: GitHub, repository: Repository, artifact: Artifact, on_bytes: OnBytes, folder: Path) -> None:
    """Keep the archive on the disk that it is unpacked to, under a name that counts as a leftover if we are killed."""
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as name:
        archive = Path(name) / "archive.zip"
        download_artifact(client, repository, artifact, archive, on_bytes)
        unpack(archive, folder)


def expired(artifact: Artifact, where: str) -> NetworkError:
    """Return the diagnostic of an artifact that GitHub no longer keeps."""
    since = f" on {artifact.expires_at[:10]}" if artifact.expires_at else ""
    hint = "run the build again"
    return NetworkError("artifact-expired", f"{artifact.name!r} expired{since}", where=where, hint=hint)


NONE: Final = frozenset({"github-not-found", "github-no-token"})
"""How GitHub says that there is none: servers that keep no attestations answer so, too."""


@dataclass(frozen=True, kw_only=True)
class _Attestation:
    bundle: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _Attestations:
    attestations: tuple[_Attestation, ...] = ()


def provenance_bundles(client: GitHub, repository: Repository, sha256: str) -> tuple[str, ...]:
    """Return the attestations of provenance that GitHub has for a file of this SHA-256, each a bundle of sigstore's.

    They are the repository's word for nothing until they are checked. Raises `NetworkError` as `GitHub.get` does.
    """
    path = f"{repository.path}/attestations/sha256:{sha256}"
    try:
        found = parsed(_Attestations, client.get(path, predicate_type="provenance"), path)
    except NetworkError as error:
        if error.code in NONE:
            return ()
        raise
    return tuple(json.dumps(each.bundle) for each in found.attestations if each.bundle)


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
        if error.code != "github-not-found":
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

    Raises `NetworkError`: `artifact-no-digest` when neither says, or as `download`.
    """
    path = f"{repository.path}/releases/assets/{asset.id}"
    expected = sha256 or sha256_in(asset.digest)
    if not expected:
        what = f"there is no SHA-256 of {asset.name!r}, so that it cannot be checked"
        raise NetworkError("artifact-no-digest", what, where=path)
    source = Source(path=path, sha256=expected, accept=BYTES, size=asset.size)
    download(client, source, destination, on_bytes)
