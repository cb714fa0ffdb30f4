"""What a run has of what is wanted: deliveries, each an archive."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from ortrim.core.delivery import WORKFLOW
from ortrim.core.sums import FileEntry
from ortrim.errors import NetworkError, PackageError, UsageError
from ortrim.fetch.deliveries import all_files, fetch_delivery, made_of
from ortrim.fetch.lock import LockedArtifact
from ortrim.fetch.names import Selection, wanted_artifacts
from ortrim.fetch.side_by_side import Download
from ortrim.fetch.store import Store
from ortrim.github.artifacts import choose_artifact, list_artifacts
from ortrim.github.client import GitHub
from ortrim.github.records import Artifact, Run, sha256_in
from ortrim.github.repositories import Repository
from ortrim.github.run_origin import require_own_run
from ortrim.github.runs import get_run, latest_runs

PLAIN: Final = re.compile(r"build \S+ \[\S+\]")
"""The names of runs that build.yml gives: one of another ref, or of models that were uploaded, has more words."""
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

    def commit(self, store: Store) -> str:
        """Return what the deliveries, which are in the store, were made of: not always what the run was started for.

        Raises `PackageError` (`deliveries-differ`) where they were made of several, and as `made_of`.
        """
        commits = {artifact.name: made_of(store, artifact) for artifact in self.artifacts}
        if len(set(commits.values())) > 1:
            why = "\n".join(f"{name}: {commit}" for name, commit in commits.items())
            what, hint = "the deliveries were made of different commits", "fetch one of them: --spec, --target"
            raise PackageError("deliveries-differ", what, where=self.page, why=why, hint=hint)
        return commits.popitem()[1]

    def files(self, store: Store) -> tuple[FileEntry, ...]:
        """Return the files of all deliveries, which are in the store. Raises as `all_files`."""
        return all_files(store, self.artifacts, (), self.page)


def look_up_run(
    client: GitHub, repository: Repository, run_id: int, selection: Selection, locked_digests: Mapping[str, str] = ANY
) -> RunOffer:
    """Find out what a run has; `locked_digests` say which archive is meant where a run that was repeated left several.

    Raises `NetworkError` (`run-not-found`, `run-not-ours`, `run-not-over`, `artifact-expired`, or as `GitHub.get`)
    `UsageError` (`nothing-to-fetch`).
    """
    run = get_run(client, repository, run_id)
    require_own_run(run, repository, WORKFLOW)
    if run.status != "completed":
        what, hint = "the run is not over yet", f"wait for it: invoke attach {run_id}"
        raise NetworkError("run-not-over", what, where=run.html_url, hint=hint)
    there = list_artifacts(client, repository, run_id)
    names = wanted_artifacts({each.name for each in there}, selection, run.html_url)
    chosen = tuple(choose_artifact(_meant(there, locked_digests), name, run) for name in names)
    return RunOffer(repository=repository, run=run, chosen=chosen)


def newest_run(client: GitHub, repository: Repository, selection: Selection) -> int:
    """Return the number of the newest run that succeeded and still has what is wanted.

    Runs of another ref, and of models that somebody uploaded, are not meant. Raises `NetworkError` (`run-not-found`, or
    as `GitHub.get`).
    """
    for run in latest_runs(client, repository, WORKFLOW, NEWEST):
        if run.conclusion != "success" or PLAIN.fullmatch(run.display_title) is None:
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
