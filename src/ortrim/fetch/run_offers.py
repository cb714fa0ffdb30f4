"""What a run has of what is wanted: deliveries, each an archive."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from ortrim.core.artifacts import FileEntry
from ortrim.errors import NetworkError, PackageError, UsageError
from ortrim.fetch.deliveries import delivered_files, fetch_delivery
from ortrim.fetch.lock import LockedArtifact
from ortrim.fetch.names import Selection, wanted_artifacts
from ortrim.fetch.side_by_side import Download
from ortrim.fetch.store import Store
from ortrim.github.artifacts import choose_artifact, list_artifacts
from ortrim.github.client import GitHub
from ortrim.github.records import Artifact, Run, sha256_in
from ortrim.github.refusals import unexpected
from ortrim.github.repositories import Repository
from ortrim.github.runs import get_run, latest_runs, run_path

WORKFLOW: Final = "build.yml"
COMMIT: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
NEWEST: Final = 20
"""How many runs are looked through for the newest that has what is wanted."""
ANY: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class RunOffer:
    """Deliveries of a run."""

    repository: Repository
    run: Run
    chosen: tuple[Artifact, ...]

    @property
    def commit(self) -> str:
        """What the run was started for."""
        return self.run.head_sha

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
            Download(
                name=each.name, size_bytes=each.size_in_bytes, run=partial(fetch_delivery, self.repository, each, store)
            )
            for each in self.chosen
            if store.remembered(sha256_in(each.digest)) is None
        )

    def files(self, store: Store) -> tuple[FileEntry, ...]:
        """Return the files of all deliveries, which are in the store.

        Raises `PackageError` (`name-twice`) where two have one of a name.
        """
        found: dict[str, FileEntry] = {}  # not all file systems tell capitals from small letters
        for artifact in self.chosen:
            for entry in delivered_files(store, artifact):
                if found.setdefault(entry.path.lower(), entry) != entry:
                    what, hint = f"two deliveries have a file {entry.path!r}", "fetch one of them: --spec, --target"
                    raise PackageError("name-twice", what, where=self.page, hint=hint)
        return tuple(sorted(found.values(), key=attrgetter("path")))


def look_up_run(
    client: GitHub, repository: Repository, run_id: int, selection: Selection, locked_digests: Mapping[str, str] = ANY
) -> RunOffer:
    """Find out what a run has; `locked_digests` say which archive is meant where a run that was repeated left several.

    Raises `NetworkError` (`run-not-found`, `run-not-over`, `artifact-expired`, `artifact-wrong-commit`, or as
    `GitHub.get`) and `UsageError` (`nothing-to-fetch`).
    """
    run = get_run(client, repository, run_id)
    if run.status != "completed":
        what, hint = "the run is not over yet", f"wait for it: invoke attach {run_id}"
        raise NetworkError("run-not-over", what, where=run.html_url, hint=hint)
    if COMMIT.fullmatch(run.head_sha) is None:
        raise unexpected(run_path(repository, run_id), "it does not say which commit the run is of")
    there = list_artifacts(client, repository, run_id)
    names = wanted_artifacts({each.name for each in there}, selection, run.html_url)
    chosen = tuple(choose_artifact(_meant(there, locked_digests), name, run, commit=run.head_sha) for name in names)
    return RunOffer(repository=repository, run=run, chosen=chosen)


def newest_run(client: GitHub, repository: Repository, selection: Selection) -> int:
    """Return the number of the newest run that succeeded and still has what is wanted.

    Raises `NetworkError` (`run-not-found`, or as `GitHub.get`).
    """
    for run in latest_runs(client, repository, WORKFLOW, NEWEST):
        if run.conclusion != "success":
            continue
        there = {each.name for each in list_artifacts(client, repository, run.id) if not each.expired}
        try:
            wanted_artifacts(there, selection, run.html_url)
        except UsageError:
            continue
        return run.id
    what = f"none of the newest {NEWEST} runs of {WORKFLOW} has {selection}"
    hint = "build it, or name a run or a release"
    raise NetworkError("run-not-found", what, where=str(repository), hint=hint)


def _meant(there: Sequence[Artifact], digests: Mapping[str, str]) -> tuple[Artifact, ...]:
    meant = {each.name for each in there if digests.get(each.name) == sha256_in(each.digest)}
    return tuple(each for each in there if each.name not in meant or digests[each.name] == sha256_in(each.digest))
