"""A stand-in for GitHub that has deliveries: runs that left them, releases of them, attestations."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pytest

from fake_sources import private_cache
from github_checks import Remote, check_requests, new_client
from github_contract import example
from github_service import GitHubService, answer, message
from github_state import COMMIT, Artifact, Release, RemoteRun, VirtualClock
from github_wire import Exchange, Reply
from loopback_service import interrupt
from ortrim.base.json import to_json
from ortrim.github.client import GitHub
from ortrim.github.client import Remote as Named
from ortrim.github.fetch import provenance
from ortrim.github.fetch import run as apps_module
from ortrim.github.fetch import run as fetch_run
from ortrim.github.fetch.offers import EVERYTHING, Selection
from ortrim.github.fetch.provenance import Provenance, ProvenanceClaim
from ortrim.github.fetch.run import FetchRequest
from ortrim.package.manifest import FACTS, DeliveryFacts

ATTESTED: Final = Path(__file__).parents[1] / "integration" / "data" / "attested"
SIGNER: Final = "https://github.invalid/octo/ort/.github/workflows/build.yml@refs/heads/main"
LINUX: Final = "ortrim-kws-linux-x64-1.21.0"
ANDROID: Final = "ortrim-kws-android-1.21.0"
TITLE: Final = "build * [12345]"
"""The name of a run that was dispatched without a ref or models."""


class FetchService(GitHubService):
    """The stand-in, with commits and attestations: `bundles` by the SHA-256 of the file that they are given for."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.commits: dict[str, str] = {}
        self.bundles: dict[str, list[Any]] = {}
        self.interrupts = ""

    def _right_reply(self, server: str, request: Exchange, path: str, query: str, body: bytes) -> Reply:
        """Answer, and press Ctrl-C once before it when the path has `interrupts` in it."""
        if self.interrupts and self.interrupts in path:
            self.interrupts = ""
            interrupt()
        return super()._right_reply(server, request, path, query, body)

    def _routes(self) -> tuple[tuple[str, str, Callable[..., Reply]], ...]:
        return (
            *super()._routes(),
            ("GET", "/commits/([^/]+)", self._commit),
            ("GET", "/attestations/sha256:([0-9a-f]{64})", self._attestations),
        )

    def _commit(self, _parameters: dict[str, str], _body: bytes, ref: str) -> Reply:
        tag = unquote(ref).removeprefix("tags/")
        if tag not in self.commits:
            return message(422, f"No commit found for SHA: {unquote(ref)}")
        return answer({**example("commit"), "sha": self.commits[tag], "files": []})  # the example's lack what they need

    def _attestations(self, parameters: dict[str, str], _body: bytes, sha256: str) -> Reply:
        assert parameters == {"predicate_type": "provenance"}
        found = self.bundles.get(sha256, [])
        if not found:
            return message(404, "Not Found")
        return answer({"attestations": [{"bundle": bundle, "repository_id": 1} for bundle in found]})

    def release(self, tag: str, files: Mapping[str, bytes], commit: str = COMMIT) -> Release:
        self.commits[tag] = commit
        made = Release(id=len(self.releases) + 4, tag=tag, files={**files, "SHA256SUMS": sums(files)})
        self.releases.append(made)
        return made

    def delivered(self, *deliveries: Artifact, conclusion: str = "success", title: str = TITLE) -> RemoteRun:
        self.template = lambda: RemoteRun(artifacts=deliveries, conclusion=conclusion)
        run = self.start(title)
        self.clock.now += 10
        return run


def sums(files: Mapping[str, bytes]) -> bytes:
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)).encode()


def facts(commit: str = COMMIT) -> bytes:
    return to_json(DeliveryFacts(commit=commit)).encode()


def delivery(
    number: int,
    package: str,
    files: Mapping[str, bytes],
    listed: bytes | None = None,
    says: bytes | None = facts(),
) -> Artifact:
    """Return the artifact of a delivery of the spec `kws`; `listed` takes the place of the right sums."""
    target, inside = io.BytesIO(), {**files, **({} if says is None else {FACTS: says})}
    with zipfile.ZipFile(target, "w") as file:
        for name, content in {**inside, "SHA256SUMS": sums(inside) if listed is None else listed}.items():
            file.writestr(zipfile.ZipInfo(name), content)
    return Artifact(id=number, name=f"delivered-kws-{package}", content=target.getvalue())


LINUX_FILES: Final = {f"{LINUX}.tar.gz": b"linux" * 1000, f"{LINUX}.manifest.json": b"{}"}
ANDROID_FILES: Final = {f"{ANDROID}.aar": b"aar" * 1000, "models/kws.ort": b"model"}
RELEASED: Final = {**LINUX_FILES, f"{ANDROID}.aar": b"aar" * 1000, f"{ANDROID}.manifest.json": b"{ }"}


class Apps:
    def __init__(self, remote: Remote, service: FetchService, folder: Path) -> None:
        self.remote = remote
        self.service = service
        self.folder = folder
        self.clients: list[Any] = []
        self.secret = service.token

    def connect(self, _named: Named, _console: object) -> GitHub:
        """Stand in for `ortrim.github.client.connect`."""
        client = new_client(self.service, self.remote.clock, self.remote.said, self.secret)
        self.clients.append(client)
        return client

    def lock(self, app: str = "app") -> Path:
        return self.folder / app / "ortrim.lock"

    def output(self, app: str = "app") -> Path:
        return self.folder / app / "ortrim-runtime"

    def names(self, app: str = "app") -> set[str]:
        folder = self.folder / app
        return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}

    def forget(self) -> None:
        for path in sorted((self.folder / "cache" / "downloads").rglob("*"), reverse=True):
            if path.is_file():
                path.unlink()


def wanted(spec: str = "", target: str = "", **options: Any) -> FetchRequest:
    return FetchRequest(selection=Selection(spec=spec, target=target) if spec or target else EVERYTHING, **options)


@contextmanager
def running_apps(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[Apps]:
    """Run the stand-in, with a cache of its own and logins for both hosts in `.netrc`; look at requests in the end."""
    netrc = folder / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\nmachine localhost login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    private_cache(folder, monkeypatch)
    virtual, said = VirtualClock(), list[str]()
    service = FetchService(virtual)
    with service.running():
        remote = Remote(service=service, client=new_client(service, virtual, said), clock=virtual, said=said)
        apps = Apps(remote, service, folder)
        (folder / "app").mkdir()
        monkeypatch.setattr(fetch_run, "connect", apps.connect)
        monkeypatch.setattr(apps_module, "find_service", lambda: remote.client.service)
        yield apps
        check_requests(service)


def with_sigstores_own_keys(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Have attestations checked with the keys that the library came with, and nobody asked for newer ones."""
    from sigstore.verify import Verifier  # noqa: PLC0415 - slow to import

    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setattr(provenance, "_verifier", lambda: Verifier.production(offline=True))


def vouching(*contents: bytes) -> Callable[[str, ProvenanceClaim], Provenance]:
    """Return a check that finds every bundle right and about these contents."""
    subjects = frozenset(hashlib.sha256(content).hexdigest() for content in contents)
    return lambda _bundle, _claim: Provenance(signer=SIGNER, subjects=subjects)


def recorded(name: str) -> Any:
    return json.loads((ATTESTED / name).read_bytes())
