"""GitHub's side of a run: while the stand-in is asked about it, something does what the workflow would."""

import io
import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from github_service import GitHubService
from github_state import COMMIT, Artifact, RemoteJob, RemoteRun, Timed

Work = Callable[[dict[str, Any]], tuple[Artifact, ...]]
"""Takes the inputs of a dispatch, and returns what the run leaves."""


class DispatchedWork:
    """Does the work of each run in a thread; `errors` belong to the test."""

    def __init__(self, service: GitHubService, work: Work, jobs: tuple[str, ...]) -> None:
        self.service = service
        self.work = work
        self.jobs = jobs
        self.errors: list[BaseException] = []
        self.started = 0
        service.template = self._start

    def dispatched(self) -> list[dict[str, Any]]:
        bodies = [json.loads(seen.body) for seen in self.service.seen if seen.path.endswith("/dispatches")]
        return [body["inputs"] for body in bodies]

    def _start(self) -> RemoteRun:
        self.started += 1
        steps = (Timed(name="Set up job", ends=0), Timed(name="Do it", ends=None))
        jobs = tuple(
            RemoteJob(name=name, id=number, ends=None, steps=steps) for number, name in enumerate(self.jobs, start=900)
        )
        started = RemoteRun(ends=None, jobs=jobs)
        threading.Thread(target=self._finish, args=(started,)).start()
        return started

    def _finish(self, started: RemoteRun) -> None:
        try:
            while len(self.dispatched()) < self.started:
                threading.Event().wait(0.02)
            started.artifacts = self.work(self.dispatched()[-1])
        except BaseException as error:  # noqa: BLE001 - it belongs to the test
            self.errors.append(error)
            started.conclusion = "failure"
        for job in started.jobs:
            job.ends = job.steps[1].ends = 0
        started.ends = 0


def stored(number: int, name: str, folder: Path, commit: str = COMMIT) -> Artifact:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                file.write(path, path.relative_to(folder).as_posix())
    return Artifact(id=number, name=name, content=content.getvalue(), commit=commit)
