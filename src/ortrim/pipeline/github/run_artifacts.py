"""What a run left, on its way home."""

import re
import tempfile
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Final

from ortrim.console import Console, Step
from ortrim.core.plan import BuildPlan, PlannedTarget
from ortrim.github.artifacts import choose_artifact, fetch_artifact, list_artifacts
from ortrim.github.records import Artifact, Run
from ortrim.pipeline.github.connection import Connection
from ortrim.pipeline.workflow_jobs.transfer import import_compiled
from ortrim.storage.cache import cache_folder
from ortrim.workflows.matrix import compiled_artifact

FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Names of artifacts that become names of folders; others could lead elsewhere."""


def fetch_compiled(
    connection: Connection, run: Run, plan: BuildPlan, targets: Iterable[PlannedTarget], console: Console
) -> None:
    """Fetch compiled targets and put each into the cache as soon as it is here.

    Raises `NetworkError` as `choose_artifact` and `fetch_artifact` do, and what `import_compiled` raises; what came
    before stays.
    """
    with console.step("fetch what was compiled") as step:
        found = list_artifacts(connection.client, connection.repository, run.id)
        wanted = [(each, compiled_artifact(plan, each.job.target.identifier)) for each in targets]
        chosen = [(each, choose_artifact(found, name, run)) for each, name in wanted]
        for target, artifact in chosen:
            with tempfile.TemporaryDirectory(dir=cache_folder("fetched"), prefix=f"{run.id}-") as work:
                _fetch(connection, artifact, Path(work) / "artifact", step)
                import_compiled((target,), Path(work) / "artifact")
        step.note(connection.client.session.traffic.words)


def fetch_there(
    connection: Connection, run: Run, plan: BuildPlan, targets: Iterable[PlannedTarget], console: Console
) -> None:
    """Fetch those of the targets that a run has left, which need not have ended well."""
    left = {each.name for each in list_artifacts(connection.client, connection.repository, run.id) if not each.expired}
    there = tuple(target for target in targets if compiled_artifact(plan, target.job.target.identifier) in left)
    if there:
        fetch_compiled(connection, run, plan, there, console)


def fetch_everything(connection: Connection, run: Run, destination: Path, console: Console) -> tuple[Path, ...]:
    """Fetch all artifacts of a run that have not expired into folders of their names, and return those.

    A folder that is there already is left as it is. Raises as `fetch_artifact` does.
    """
    with console.step(f"fetch what the run {run.id} left") as step:
        found = newest(list_artifacts(connection.client, connection.repository, run.id))
        there = tuple(each for each in found if not each.expired)
        folders = tuple(destination / _folder_name(each) for each in there)
        for artifact, folder in zip(there, folders, strict=True):
            _fetch(connection, artifact, folder, step)
        for artifact in set(found) - set(there):
            step.note(f"{artifact.name}: expired")
        step.note(connection.client.session.traffic.words)
    return folders


def newest(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Return artifacts without those that a repeated run has left before."""
    return tuple({each.name: each for each in sorted(artifacts, key=attrgetter("id"))}.values())


def _folder_name(artifact: Artifact) -> str:
    return artifact.name if FOLDER_NAME.fullmatch(artifact.name) else f"artifact-{artifact.id}"


def _fetch(connection: Connection, artifact: Artifact, folder: Path, step: Step) -> None:
    def show(done: int, total: int) -> None:
        step.progress(done, total, artifact.name)

    fetch_artifact(connection.client, connection.repository, artifact, folder, show)
