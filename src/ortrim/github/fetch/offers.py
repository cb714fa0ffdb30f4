"""What a release or a run has of what is wanted, before anything large is fetched."""

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from ortrim.base.archives import unpack
from ortrim.base.cache import locked, remove_leftovers
from ortrim.base.checksums import LARGEST_SUMS, SUMS, FileEntry, check_listed, first_clash, parse_sums
from ortrim.base.files import storage_errors
from ortrim.base.http import OnBytes
from ortrim.base.json import from_json
from ortrim.buildspec.targets import TARGETS, matches
from ortrim.errors import NetworkError, PackageError, StorageError, UsageError
from ortrim.github.artifacts import (
    choose_artifact,
    choose_asset,
    download_artifact,
    download_asset,
    get_release,
    list_artifacts,
    list_assets,
)
from ortrim.github.client import Artifact, Asset, GitHub, Release, Run, commit_of_tag, default_branch, sha256_in
from ortrim.github.fetch.placing import Download, LockedArtifact, Store
from ortrim.github.runs import get_run, is_of_commit_in, latest_runs, require_own_run
from ortrim.package.manifest import FACTS, FAILED, FOLDERS, PREFIX, WORKFLOW, DeliveryFacts
from ortrim.platforms import by_platform

MOST_FACTS: Final = 4096


def delivered_files(store: Store, archive: LockedArtifact) -> tuple[FileEntry, ...]:
    """Return the files of an archive that was fetched."""
    entries = store.remembered(archive.sha256)
    if entries is None:
        what, hint = f"{archive.name!r} was removed while it was read", "run the same command again"
        raise StorageError("cache-damaged", what, where=str(store.folder), hint=hint)
    return entries


def all_files(
    store: Store, archives: Iterable[LockedArtifact], single: Iterable[FileEntry], page: str
) -> tuple[FileEntry, ...]:
    """Return single files and those of archives that were fetched, but for what deliveries say of themselves."""
    fetched = (delivered_files(store, archive) for archive in archives)
    entries = {entry for each in (single, *fetched) for entry in each if entry.path not in {FACTS, FAILED}}
    found = tuple(sorted(entries, key=attrgetter("path")))
    if clash := first_clash([SUMS, *(entry.path for entry in found)]):
        one, other = clash
        twice = f"two deliveries have a file {one!r}"
        what = twice if one == other else f"not every file system can hold their files {one!r} and {other!r}"
        raise PackageError("name-twice", what, where=page, hint="fetch one of them: --spec, --target")
    return found


def made_of(store: Store, artifact: LockedArtifact) -> str:
    """Return the commit that a delivery in the store was made of."""
    facts = next((entry for entry in delivered_files(store, artifact) if entry.path == FACTS), None)
    if facts is not None and facts.size_bytes <= MOST_FACTS:
        path = store.path_of(facts.sha256)
        with storage_errors(path), suppress(ValidationError):
            if commit := from_json(DeliveryFacts, path.read_bytes()).commit:
                return commit
    what, hint = "the delivery does not name its commit", "build it again with the current build.yml"
    raise PackageError("delivery-without-commit", what, where=f"{artifact.name}/{FACTS}", hint=hint)


def fetch_delivery(artifact: Artifact, store: Store, client: GitHub, on_bytes: OnBytes) -> None:
    """Fetch a delivery into the store."""
    download = partial(download_artifact, client, artifact, on_bytes=on_bytes)
    fetch_archive(store, artifact.name, sha256_in(artifact.digest), download)


def fetch_archive(store: Store, name: str, sha256: str, download: Callable[[Path], object]) -> None:
    """Download an archive, check its files and put them into the store; another process may do so at the same time.

    `sha256` is what `download` checks.
    """
    place = store.list_of(sha256)
    # The list's own lock is taken by who looks at it.
    with locked(place.with_suffix(".zip")), storage_errors(place):
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
        what, hint = f"holds the link {link.relative_to(folder).as_posix()[:200]!r}", "no delivery of ortrim has one"
        raise StorageError("unsafe-archive", what, where=name, hint=hint)


ASSEMBLED: Final = {platform.NAME: own for platform, own in by_platform(TARGETS, TARGETS.__getitem__) if platform.SDK}
"""What a package for several targets is called after, the name of its assembly -> its targets."""
PACKAGES: Final = sorted((*TARGETS, *ASSEMBLED), key=len, reverse=True)
DELIVERY: Final = re.compile(rf"{PREFIX}(?P<spec>[A-Za-z0-9._-]+)-(?P<package>{'|'.join(PACKAGES)})")
ASSET: Final = re.compile(
    rf"ortrim-(?P<spec>[A-Za-z0-9._-]+?)-(?P<package>{'|'.join(PACKAGES)})(?:-[0-9][^/]*|{re.escape(FOLDERS)})"
)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is wanted: a spec's name and targets as `--target` takes them; empty for all of them."""

    spec: str = ""
    target: str = ""

    def takes(self, spec: str, package: str) -> bool:
        """Whether a package, for one target or for a system, is wanted."""
        patterns = [pattern.strip() for pattern in self.target.split(",") if pattern.strip()]
        around = (each for each, inside in ASSEMBLED.items() if package in inside)
        names = [package, *ASSEMBLED.get(package, ()), *around]
        of_target = not patterns or any(matches(pattern, name) for pattern in patterns for name in names)
        return of_target and self.spec in {"", spec}

    def __str__(self) -> str:
        words = [f"spec {self.spec}"] * bool(self.spec) + [f"target {self.target}"] * bool(self.target)
        return ", ".join(words) or "everything"


EVERYTHING: Final = Selection()


def wanted_artifacts(names: Iterable[str], selection: Selection, where: str) -> tuple[str, ...]:
    """Return the names of the deliveries that are wanted, in order."""
    return _wanted(names, DELIVERY, selection, where)


def wanted_assets(names: Iterable[str], selection: Selection, where: str) -> tuple[str, ...]:
    """Return the names of a release's files that are wanted, in order."""
    if selection == EVERYTHING:
        return tuple(sorted(names))
    return _wanted(names, ASSET, selection, where)


def _wanted(names: Iterable[str], form: re.Pattern[str], selection: Selection, where: str) -> tuple[str, ...]:
    found = {name: match for name in sorted(names) if (match := form.fullmatch(name))}
    wanted = tuple(name for name, match in found.items() if selection.takes(match["spec"], match["package"]))
    if not wanted:
        there = sorted({f"{match['spec']} for {match['package']}" for match in found.values()})
        why = f"it has: {'; '.join(there[:20])}" if there else "it has no delivery of ortrim"
        hint = "choose with --spec NAME and --target GLOB"
        raise UsageError("nothing-to-fetch", f"has nothing of {selection}", where=where, why=why, hint=hint)
    return wanted


@dataclass(frozen=True, kw_only=True)
class ReleaseOffer:
    """Files of a release, the commit of whose tag is `tagged`.

    The SHA-256 of each is that of the release's `SHA256SUMS`.
    """

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
            Download(name=asset.name, size_bytes=asset.size, run=partial(_fetch, (entry, asset), store))
            for sha256, (entry, asset) in by_digest.items()
            if sha256 in missing
        )

    def commit(self, _store: Store) -> str:
        """Return the commit of the tag."""
        return self.tagged

    def files(self, store: Store) -> tuple[FileEntry, ...]:
        """Return the files, with those of archives, which are in the store."""
        single = (entry for entry, _ in self.assets if not entry.path.endswith(FOLDERS))
        return all_files(store, self.artifacts, single, self.page)


def look_up_release(client: GitHub, tag: str, selection: Selection) -> ReleaseOffer:
    """Find out what a release has."""
    release = get_release(client, tag)
    assets = list_assets(client, release)
    listed = _sums(client, choose_asset(assets, SUMS, release))
    names = wanted_assets(listed, selection, release.html_url)
    if clash := first_clash([SUMS, *names]):
        what = f"not every file system can hold its files {clash[0]!r} and {clash[1]!r}"
        raise PackageError("name-twice", what, where=release.html_url)
    chosen = [choose_asset(assets, name, release) for name in names]
    return ReleaseOffer(
        release=release,
        tagged=commit_of_tag(client, tag),
        assets=tuple((_entry(asset, listed[asset.name], release), asset) for asset in chosen),
    )


def _sums(client: GitHub, asset: Asset) -> dict[str, str]:
    where = asset.name
    if asset.size > LARGEST_SUMS:
        raise PackageError("checksums-damaged", f"has {asset.size:,} bytes, which no such list has", where=where)
    with tempfile.TemporaryDirectory(prefix="ortrim-sums-") as work:
        path = Path(work) / SUMS
        download_asset(client, asset, path)
        try:
            return parse_sums(path.read_bytes().decode())
        except ValueError as error:
            what = "the release's list of digests cannot be read"
            raise PackageError("checksums-damaged", what, where=where, why=str(error)) from error


def _entry(asset: Asset, sha256: str, release: Release) -> FileEntry:
    known = sha256_in(asset.digest)
    if known and known != sha256:
        what = f"GitHub has another {asset.name!r} than {SUMS} of the release says"
        why, hint = f"{SUMS:10} {sha256}\n{'GitHub':10} {known}", "find out who replaced it before you use it"
        raise PackageError("digest-mismatch", what, where=release.html_url, why=why, hint=hint)
    return FileEntry(path=asset.name, size_bytes=asset.size, sha256=sha256)


def _fetch(wanted: tuple[FileEntry, Asset], store: Store, client: GitHub, on_bytes: OnBytes) -> None:
    """Fetch a file into the store, or those of an archive."""
    entry, asset = wanted
    download = partial(download_asset, client, asset, sha256=entry.sha256, on_bytes=on_bytes)
    if entry.path.endswith(FOLDERS):
        fetch_archive(store, asset.name, entry.sha256, download)
        return
    download(store.path_of(entry.sha256))
    if not store.has(entry):
        what = f"{asset.name!r} has another size than GitHub says"
        raise NetworkError("artifact-digest-mismatch", what, where=str(client.repository))


PLAIN: Final = re.compile(r"build \S+ \[\S+\]")
"""The names of runs that build.yml gives: one of another ref, or of models that were uploaded, has more words."""
NEWEST: Final = 20
"""How many runs are looked through for the newest that has what is wanted."""
ANY: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class RunOffer:
    """Deliveries of a run."""

    run: Run
    chosen: tuple[Artifact, ...]

    @property
    def page(self) -> str:
        """Where people see the run."""
        return self.run.html_url

    @property
    def words(self) -> str:
        """Which run it is."""
        branch = f" on {self.run.head_branch}" if self.run.head_branch else ""
        return f"run {self.run.id}{branch} of {self.run.created_at[:10]}"

    @property
    def artifacts(self) -> tuple[LockedArtifact, ...]:
        """The deliveries, as a lock file names them."""
        return tuple(LockedArtifact(name=each.name, sha256=sha256_in(each.digest)) for each in self.chosen)

    def downloads(self, store: Store) -> tuple[Download, ...]:
        """Return the deliveries that are not in the store yet."""
        return tuple(
            Download(name=each.name, size_bytes=each.size_in_bytes, run=partial(fetch_delivery, each, store))
            for each in self.chosen
            if store.remembered(sha256_in(each.digest)) is None
        )

    def commit(self, store: Store) -> str:
        """Return what the deliveries, which are in the store, were made of: not always what the run was started for."""
        commits = {artifact.name: made_of(store, artifact) for artifact in self.artifacts}
        if len(set(commits.values())) > 1:
            why = "\n".join(f"{name}: {commit}" for name, commit in commits.items())
            what, hint = "the deliveries were made of different commits", "fetch one of them: --spec, --target"
            raise PackageError("deliveries-differ", what, where=self.page, why=why, hint=hint)
        return commits.popitem()[1]

    def files(self, store: Store) -> tuple[FileEntry, ...]:
        """Return the files of all deliveries, which are in the store."""
        return all_files(store, self.artifacts, (), self.page)


def look_up_run(client: GitHub, run_id: int, selection: Selection, locked_digests: Mapping[str, str] = ANY) -> RunOffer:
    """Find out what a run has; `locked_digests` say which archive is meant where a repeated run left several."""
    run = get_run(client, run_id)
    require_own_run(run, client.repository, WORKFLOW)
    if run.status != "completed":
        what, hint = "the run has not ended yet", f"wait for it: invoke attach {run_id}"
        raise NetworkError("run-not-over", what, where=run.html_url, hint=hint)
    there = list_artifacts(client, run_id)
    names = wanted_artifacts({each.name for each in there}, selection, run.html_url)
    chosen = tuple(choose_artifact(_meant(there, locked_digests), name, run) for name in names)
    return RunOffer(run=run, chosen=chosen)


Offer = ReleaseOffer | RunOffer
"""What there is; of a run, commit and files are known once everything is in the store."""


def newest_run(client: GitHub, selection: Selection, workflow: str = WORKFLOW) -> int:
    """Return the number of the newest run that succeeded and still has what is wanted.

    Runs of build.yml for another ref, and of models that somebody uploaded, are not meant. Those of another `workflow`
    have names that its author gives: of these, the ones for the default branch.
    """
    branch = "" if workflow == WORKFLOW else default_branch(client)
    for run in latest_runs(client, workflow, NEWEST, branch=branch):
        meant = is_of_commit_in(client.repository, run) if branch else PLAIN.fullmatch(run.display_title)
        if run.conclusion != "success" or not meant:
            continue
        there = {each.name for each in list_artifacts(client, run.id) if not each.expired}
        try:
            wanted_artifacts(there, selection, run.html_url)
        except UsageError:
            continue
        return run.id
    what = f"none of the newest {NEWEST} runs of {workflow} has {selection}"
    hint = "build it, or name a run or a release"
    raise NetworkError("run-not-found", what, where=str(client.repository), hint=hint)


def _meant(there: Sequence[Artifact], digests: Mapping[str, str]) -> tuple[Artifact, ...]:
    meant = {each.name for each in there if digests.get(each.name) == sha256_in(each.digest)}
    return tuple(each for each in there if each.name not in meant or digests[each.name] == sha256_in(each.digest))
