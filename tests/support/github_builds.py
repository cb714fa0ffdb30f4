"""Builds at the stand-in for GitHub: its runs leave what a compiled plan leaves, without compiling anything."""

import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from fake_sources import private_cache
from finished_builds import leave_compiled
from github_checks import Remote, running_remote
from github_state import Artifact, RemoteJob, RemoteRun, Timed
from ortrim.base.tools import EMULATIONS
from ortrim.compiling.plan import PlannedTarget
from ortrim.github import remote_build
from ortrim.github.plan_input import HandedInput, decode
from ortrim.pipeline.transfer import export_compiled

TWO: Final = '[[targets]]\nid = "linux-x64"\n[[targets]]\nid = "linux-arm64"\n'
"""The targets of the buildspec `sample` in tests of builds at GitHub."""
STEPS: Final = (Timed(name="Compile", starts=10, ends=80),)
LOG: Final = b"undefined reference to `dlopen'\n"


class There:
    """GitHub's side: each run takes 100 s and leaves what was `compiled`, but for the targets that `fail`."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.compiled: tuple[Artifact, ...] = ()
        self.fail: set[str] = set()
        remote.service.template = self._run

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(seen.body) for seen in self.remote.service.seen if seen.path.endswith("/dispatches")]

    @property
    def plans(self) -> list[HandedInput]:
        return [decode(body["inputs"]["plan"]) for body in self.bodies]

    def _run(self) -> RemoteRun:
        jobs = tuple(
            RemoteJob(name=f"compile {target}", id=900 + each.id, ends=90, steps=STEPS, log=LOG,
                      conclusion="failure" if target in self.fail else "success")
            for each in self.compiled for target in (_target(each),)
        )  # fmt: skip
        first = 100 * len(self.remote.service.runs)
        left = tuple(replace(each, id=first + each.id) for each in self.compiled if _target(each) not in self.fail)
        return RemoteRun(ends=100, jobs=jobs, artifacts=left, conclusion="failure" if self.fail else "success")


@contextmanager
def github_builds(targets: Iterable[PlannedTarget], work: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[There]:
    """Run the stand-in, whose runs leave these targets, and connect the pipeline with it."""
    emulator = work / "emulators" / EMULATIONS["arm64"].user.name
    emulator.parent.mkdir(parents=True)
    emulator.touch(0o755)
    monkeypatch.setenv("PATH", str(emulator.parent), prepend=os.pathsep)
    with running_remote(monkeypatch) as remote:
        there = There(remote)
        with monkeypatch.context() as elsewhere:
            private_cache(work, elsewhere)
            there.compiled = tuple(artifact_of(n, target, work / "left") for n, target in enumerate(targets, start=1))
        monkeypatch.setattr(remote_build, "connect", lambda *_: remote.client)
        monkeypatch.setattr(remote_build, "build", lambda *_: ("report",))
        yield there


def artifact_of(number: int, target: PlannedTarget, folder: Path) -> Artifact:
    leave_compiled(target)
    return zipped(number, target.identifier, export_compiled(target, folder))


def zipped(number: int, target: str, archive: Path) -> Artifact:
    """Return the artifact of a compiled target of the buildspec `sample`, as actions/upload-artifact stores a file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.write(archive, archive.name)
    return Artifact(id=number, name=f"compiled-sample-{target}", content=content.getvalue())


def expired(artifact: Artifact) -> Artifact:
    return replace(artifact, expired=True)


def _target(artifact: Artifact) -> str:
    return artifact.name.removeprefix("compiled-sample-")
