"""The artifacts of a run and the assets of a release; no other server is shown our token for them."""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote, urljoin

from ortrim.base import http
from ortrim.base.archives import unpack
from ortrim.base.cache import locked, publish_folder
from ortrim.base.files import sha256_of, storage_errors
from ortrim.base.http import Incoming, OnBytes, arriving, silent
from ortrim.errors import NetworkError
from ortrim.github.client import (
    MOVED,
    REDIRECTS,
    Artifact,
    Asset,
    GitHub,
    Release,
    Run,
    everything,
    parsed,
    sha256_in,
    unexpected,
)

RENAMED: Final = frozenset({301, 308})
"""How the API says that a repository has another name now; to stored files it sends with 302."""


@contextmanager
def opened_download(client: GitHub, path: str, headers: Mapping[str, str]) -> Iterator[http.Response]:
    """Give the answer to one GET at the end of all redirects, whatever its status, its body still to be read.

    The addresses that the API gives are good for a minute: each attempt asks for a new one.
    """
    with ExitStack() as stack:
        response = stack.enter_context(client.open(path, headers))
        for _ in range(REDIRECTS):
            if response.status_code not in MOVED:
                yield response
                return
            target = _target(response, path)
            if response.status_code in RENAMED and http.same_origin(target, client.service.api):
                response = stack.enter_context(client.open(target, headers))
                continue
            _check(client, path, target)
            session = stack.enter_context(http.new_session(http.as_it_is))
            client.session.traffic.requests += 1
            response = stack.enter_context(http.opened(session, "GET", target, headers={**headers, "Accept": "*/*"}))
    raise unexpected(path, "its redirects form a loop")


def _target(response: http.Response, path: str) -> str:
    try:
        return urljoin(response.url, response.headers.get("Location", ""))
    except ValueError:
        raise unexpected(path, "it redirects to an invalid address") from None


def _check(client: GitHub, path: str, target: str) -> None:
    secure = target.lower().startswith("https:") or client.service.api.startswith("http:")
    if not (secure and http.is_protected(target)):
        raise unexpected(path, "it redirects to an address that is not https")


MAXIMUM_BYTES: Final = 4 << 30
VAIN_ATTEMPTS: Final = 6
"""How often in a row a download may bring nothing new."""
MOST_ATTEMPTS: Final = 200
LONGEST_PAUSE: Final = 30.0
OF_A_FILE: Final = frozenset({200, 206, 416})
"""Statuses of answers that are a part of a file, or say that there is none left."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """What to download: its path in the API, the kind of content to ask for, its SHA-256, its size if known."""

    path: str
    sha256: str
    accept: str = "application/vnd.github+json"
    size: int = 0


class Limited(http.TransportError):
    """A rate limit, which has been waited for."""


def download(client: GitHub, source: Source, destination: Path, on_bytes: OnBytes = silent) -> None:
    """Fetch a file into `destination`, which appears only when its SHA-256 is right; one that is there already stays.

    After a cut it goes on where it was; what was put together, or may have been cut short, and is not right, is fetched
    once more.
    """
    with locked(destination), storage_errors(destination):
        if destination.is_file() and sha256_of(destination) == source.sha256:
            return
        with arriving(destination) as file:
            incoming = Incoming(file, source.path, MAXIMUM_BYTES, size=source.size, on_bytes=on_bytes)
            actual = _fetched(client, source, incoming, file)
            if actual != source.sha256 and not incoming.is_of_one_piece:
                incoming.restart()
                incoming.furthest = 0
                actual = _fetched(client, source, incoming, file)
            if actual != source.sha256:
                why = f"expected {source.sha256}\nactual   {actual}"
                what, hint = "the download does not match its digest", "find out why before you use it"
                raise NetworkError("artifact-digest-mismatch", what, where=source.path, why=why, hint=hint)


def _fetched(client: GitHub, source: Source, incoming: Incoming, file: IO[bytes]) -> str:
    """Fetch what is missing of a file, and return the digest of the whole."""
    traffic, received, again = client.session.traffic, incoming.received, incoming.again
    try:
        _fetch(client, source, incoming)
    finally:
        traffic.bytes_received += incoming.received - received
        traffic.bytes_again += incoming.again - again
    file.flush()
    return sha256_of(Path(file.name))


def _fetch(client: GitHub, source: Source, incoming: Incoming) -> None:
    vain = limits = 0
    for _ in range(MOST_ATTEMPTS):
        before = incoming.furthest
        failed = _attempt(client, source, incoming, limits)
        if failed is None:
            return
        limits = limits + 1 if isinstance(failed, Limited) else 0
        vain = 0 if incoming.furthest > before else vain + (not isinstance(failed, Limited))
        if vain == VAIN_ATTEMPTS or failed.permanent:
            break
        client.session.traffic.repeats += 1
        client.session.rest(0.0 if isinstance(failed, Limited) else min(2.0**vain, LONGEST_PAUSE))
    hint = "check the network or the proxy settings, then run the same command again"
    what = f"the download broke off at {incoming.there:,} bytes, again and again"
    raise NetworkError("download-failed", what, where=source.path, why=str(failed), hint=hint)


def _attempt(client: GitHub, source: Source, incoming: Incoming, limits: int) -> http.TransportError | None:
    """Fetch what is still missing; returns what got in the way. Only the API's own refusals are final."""
    try:
        with opened_download(client, source.path, {"Accept": source.accept, **incoming.headers}) as response:
            if response.status_code in OF_A_FILE:
                incoming.take(response, client.session.clock)
                return None
            own = response.url.startswith(client.service.api + "/")
            answer = http.whole(response, client.session.clock)
    except http.TransportError as failed:
        return failed
    if own and client.session.waited_for_limit(answer, limits, source.path):
        return Limited("GitHub's rate limit")
    if own and answer.status < 500:
        raise client.refused(answer, source.path)
    return http.TransportError(f"{'GitHub' if own else 'the server that stores the files'} answered {answer.status}")


SHOWN_NAMES: Final = 20


def list_artifacts(client: GitHub, run_id: int) -> tuple[Artifact, ...]:
    """Return the artifacts of a run, the expired ones among them."""
    return everything(client, f"{client.repository.run_path(run_id)}/artifacts", Artifact, "artifacts")


def choose_artifact(artifacts: Sequence[Artifact], name: str, run: Run) -> Artifact:
    """Return the artifact of this name, the newest where a repeated run left several."""
    found = [artifact for artifact in artifacts if artifact.name == name]
    if not found:
        names = sorted({artifact.name for artifact in artifacts})[:SHOWN_NAMES]
        why = f"it has: {', '.join(names)}" if names else "it has none"
        raise NetworkError("artifact-missing", f"the run has no artifact {name!r}", where=run.html_url, why=why)
    artifact = max(found, key=attrgetter("id"))
    if artifact.expired:
        raise expired(artifact, run.html_url)
    return artifact


def download_artifact(client: GitHub, artifact: Artifact, destination: Path, on_bytes: OnBytes = silent) -> None:
    """Fetch an artifact as it is stored, mostly a zip archive, which nobody but `unpack` should unpack."""
    path = f"{client.repository.path}/actions/artifacts/{artifact.id}/zip"
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


def fetch_artifact(client: GitHub, artifact: Artifact, folder: Path, on_bytes: OnBytes = silent) -> bool:
    """Fetch an artifact and unpack it into `folder`, which appears only when it is complete.

    Returns False, without asking anybody, when the folder is there.
    """
    return publish_folder(folder, partial(_fill, client, artifact, on_bytes))


def _fill(client: GitHub, artifact: Artifact, on_bytes: OnBytes, folder: Path) -> None:
    """Keep the archive on the disk that it is unpacked to, under a name that counts as a leftover if we are killed."""
    with storage_errors(folder), tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as name:
        archive = Path(name) / "archive.zip"
        download_artifact(client, artifact, archive, on_bytes)
        unpack(archive, folder)


def expired(artifact: Artifact, where: str) -> NetworkError:
    """Return the diagnostic of an artifact that GitHub no longer keeps."""
    since = f" on {artifact.expires_at[:10]}" if artifact.expires_at else ""
    hint = "run the build again"
    return NetworkError("artifact-expired", f"{artifact.name!r} expired{since}", where=where, hint=hint)


NONE: Final = frozenset({"github-not-found", "github-no-token"})
"""How GitHub says that there is none: servers that keep no attestations answer so, too."""


def provenance_bundles(client: GitHub, sha256: str) -> tuple[str, ...]:
    """Return the attestations of provenance that GitHub has for a file of this SHA-256, each a bundle of sigstore's.

    They are the repository's word for nothing until they are checked.
    """
    path = f"{client.repository.path}/attestations/sha256:{sha256}"
    try:
        answer = client.get(path, predicate_type="provenance")
        if "attestations" not in parsed(dict[str, Any], answer, path):
            return ()
        found = parsed(tuple[dict[str, Any], ...], answer, path, "attestations")
    except NetworkError as error:
        if error.code in NONE:
            return ()
        raise
    return tuple(json.dumps(each["bundle"]) for each in found if each.get("bundle"))


BYTES: Final = "application/octet-stream"
"""Without this the API describes a file instead of giving it."""


def get_release(client: GitHub, tag: str = "") -> Release:
    """Return the release of a tag, or the latest that is neither a draft nor a pre-release."""
    path = f"{client.repository.path}/releases/" + (f"tags/{quote(tag, safe='')}" if tag else "latest")
    try:
        return parsed(Release, client.get(path), path)
    except NetworkError as error:
        if error.code != "github-not-found":
            raise
        what = f"{client.repository} has no release of {tag[:200]!r}" if tag else f"{client.repository} has no release"
        raise NetworkError("release-not-found", what, where=path, why=error.why, hint=error.hint) from None


def list_assets(client: GitHub, release: Release) -> tuple[Asset, ...]:
    """Return the files of a release."""
    path = f"{client.repository.path}/releases/{release.id}/assets"
    return everything(client, path, Asset)


def choose_asset(assets: Sequence[Asset], name: str, release: Release) -> Asset:
    """Return the file of this name."""
    asset = next((asset for asset in assets if asset.name == name), None)
    if asset is None or asset.state != "uploaded":
        names = sorted(asset.name for asset in assets if asset.state == "uploaded")[:SHOWN_NAMES]
        why = f"it has: {', '.join(names)}" if names else "it has none"
        what = f"the release {release.tag_name} has no file {name!r}"
        raise NetworkError("asset-missing", what, where=release.html_url, why=why)
    return asset


def download_asset(
    client: GitHub,
    asset: Asset,
    destination: Path,
    *,
    sha256: str = "",
    on_bytes: OnBytes = silent,
) -> None:
    """Fetch a file of a release; `sha256` is what a lock file or `SHA256SUMS` says it is, and then counts alone."""
    path = f"{client.repository.path}/releases/assets/{asset.id}"
    expected = sha256 or sha256_in(asset.digest)
    if not expected:
        what = f"there is no SHA-256 of {asset.name!r}, so that it cannot be checked"
        raise NetworkError("artifact-no-digest", what, where=path)
    source = Source(path=path, sha256=expected, accept=BYTES, size=asset.size)
    download(client, source, destination, on_bytes)
