"""What the stand-in for GitHub knows: workflows, runs that go on with the clock, what they leave, releases."""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from github_contract import example
from ortrim.github.workflow_files import INPUTS

COMMIT: Final = "c0ffee" + 34 * "0"
START: Final = 1_795_262_400.0
"""When the stand-in's clock starts, in seconds since 1970: 2026-11-21T12:00:00Z."""

Data = dict[str, Any]


@dataclass(kw_only=True)
class VirtualClock:
    """Time that passes only when somebody sleeps, or when a body drips; `looks` is how often it was read."""

    now: float = START
    slept: list[float] = field(default_factory=list)
    looks: int = 0

    def read(self) -> float:
        self.looks += 1
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(kw_only=True)
class Timed:
    """Something that starts and ends some seconds after its run was made; not ended: None."""

    name: str
    starts: float = 0
    ends: float | None = 1
    conclusion: str = "success"

    def state(self, since: float) -> Data:
        """Return what the API says of it after so many seconds."""
        over = self.ends is not None and since >= self.ends
        status = "completed" if over else "in_progress" if since >= self.starts else "queued"
        return {"name": self.name, "status": status, "conclusion": self.conclusion if over else None}


@dataclass(kw_only=True)
class RemoteJob(Timed):
    id: int = 900
    steps: tuple[Timed, ...] = ()
    log: bytes = b""

    def data(self, since: float, created: float, page: str) -> Data:
        """Return what the API says of the job after so many seconds."""
        steps = [
            {
                **step.state(since),
                "number": number,
                "started_at": stamp(created + step.starts),
                "completed_at": stamp(created + step.ends) if step.ends is not None else None,
            }
            for number, step in enumerate(self.steps, start=1)
        ]
        return {
            **example("job-paginated")["jobs"][0], **self.state(since), "id": self.id, "steps": steps,
            "html_url": f"{page}/job/{self.id}", "created_at": stamp(created), "run_attempt": 1,
            "labels": ["ubuntu-24.04"], "runner_name": None,
        }  # fmt: skip


@dataclass(kw_only=True)
class Artifact:
    id: int
    name: str
    content: bytes
    expired: bool = False
    digest: str | None = ""
    commit: str = COMMIT

    def data(self, run_id: int) -> Data:
        """Return what the API says of it; a `digest` of "" means the right one."""
        digest = f"sha256:{hashlib.sha256(self.content).hexdigest()}" if self.digest == "" else self.digest
        return {
            **example("artifact"), "id": self.id, "name": self.name, "size_in_bytes": len(self.content),
            "expired": self.expired, "digest": digest, "created_at": stamp(START), "expires_at": stamp(START + 86400),
            "archive_download_url": f"https://api.github.invalid/{self.id}/zip",
            "workflow_run": {"id": run_id, "head_sha": self.commit, "head_branch": "main"},
        }  # fmt: skip


@dataclass(kw_only=True)
class RemoteRun(Timed):
    """A run; `listed` is after how many seconds the API knows of it."""

    name: str = "build"
    id: int = 0
    title: str = ""
    created: float = START
    listed: float = 0
    jobs: tuple[RemoteJob, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    cancels_at: float | None = None
    attempt: int = 1
    path: str = ".github/workflows/build.yml@main"
    head_repository: str = "octo/ort"
    head_branch: str = "main"
    called: tuple[str, ...] = ()
    commit: str = COMMIT

    def data(self, now: float, page: str) -> Data:
        since = now - self.created
        state = self.state(since)
        if self.cancels_at is not None and now >= self.cancels_at:
            state = {"name": self.name, "status": "completed", "conclusion": "cancelled"}
        shown = example("workflow-run")
        return {
            **shown, **state, "id": self.id, "display_title": self.title, "html_url": page,
            "head_sha": self.commit, "head_branch": self.head_branch, "event": "workflow_dispatch",
            "created_at": stamp(self.created), "run_attempt": self.attempt, "path": self.path,
            "referenced_workflows": [{"path": path, "sha": COMMIT, "ref": "refs/tags/v1"} for path in self.called],
            "head_repository": {**shown["head_repository"], "full_name": self.head_repository},
        }  # fmt: skip


@dataclass(kw_only=True)
class Workflow:
    inputs: frozenset[str] = frozenset(each.name for each in INPUTS)
    enabled: bool = True
    dispatchable: bool = True
    tells_run: bool = True
    """Whether a dispatch is answered with the run's number, as since 2026-02, or with nothing."""

    def objection(self, data: Data, refs: set[str]) -> str:
        """Return what GitHub has against a dispatch, in its words, empty for nothing."""
        if data.get("ref") not in refs:
            return f"No ref found for: {data.get('ref')}"
        if not self.enabled:
            return "Cannot trigger a 'workflow_dispatch' on a disabled workflow"
        if not self.dispatchable:
            return "Workflow does not have 'workflow_dispatch' trigger"
        unknown = sorted(set(data.get("inputs", {})) - self.inputs)
        return f"Unexpected inputs provided: {json.dumps(unknown)}" if unknown else ""


@dataclass(kw_only=True)
class Release:
    id: int
    tag: str
    files: dict[str, bytes]
    digests: bool = True
    states: dict[str, str] = field(default_factory=dict)
    draft: bool = False
    prerelease: bool = False

    def data(self) -> Data:
        page = f"https://github.invalid/octo/ort/releases/tag/{self.tag}"
        own = {
            "id": self.id,
            "tag_name": self.tag,
            "html_url": page,
            "draft": self.draft,
            "prerelease": self.prerelease,
        }
        return {**example("release"), **own}

    def assets(self) -> list[Data]:
        """Return what the API says of its files; their numbers are the release's and their places."""
        return [
            {
                **example("release-asset"), "id": 1000 * self.id + place, "name": name, "size": len(content),
                "state": self.states.get(name, "uploaded"), "content_type": "application/zip",
                "digest": "sha256:" + hashlib.sha256(content).hexdigest() if self.digests else None,
            }
            for place, (name, content) in enumerate(self.files.items())
        ]  # fmt: skip
