"""What GitHub's API tells of runs, artifacts and releases: the parts that ortrim reads.

Source: GitHub's OpenAPI description, schemas `workflow-run`, `job`, `artifact`, `release` and `release-asset`.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

from pydantic import Field, ValidationError

from ortrim.base.http import Answer
from ortrim.base.json import from_json
from ortrim.github.transport import unexpected

T = TypeVar("T")

Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
Text = Annotated[str, Field(max_length=4096)]
SHA256: Final = re.compile(r"sha256:([0-9a-f]{64})")


@dataclass(frozen=True, kw_only=True)
class RepositoryFacts:
    """A repository."""

    default_branch: Text


@dataclass(frozen=True, kw_only=True)
class StartedRun:
    """The answer to a dispatch."""

    workflow_run_id: Number
    html_url: Text


@dataclass(frozen=True, kw_only=True)
class RepositoryName:
    """A repository as others mention it: `owner/name`."""

    full_name: Text


@dataclass(frozen=True, kw_only=True)
class ReferencedWorkflow:
    """A reusable workflow that a run calls: `owner/name/.github/workflows/file.yml@ref`."""

    path: Text


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of a workflow; `conclusion` is there once `status` is `completed`. Times are UTC, as GitHub writes them.

    `path` is that of the workflow's file, in some answers with `@` and a ref behind it. `head_repository` has the
    commit that was run: another one than the run's own for a pull request of a fork, None for one that is gone.
    """

    id: Number
    status: Text | None
    conclusion: Text | None
    html_url: Text
    display_title: Text = ""
    head_branch: Text | None = None
    created_at: Text = ""
    run_attempt: Number = 1
    path: Text = ""
    head_repository: RepositoryName | None = None
    referenced_workflows: tuple[ReferencedWorkflow, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowStep:
    """One step of a job."""

    name: Text
    status: Text
    conclusion: Text | None
    started_at: Text | None = None
    completed_at: Text | None = None


@dataclass(frozen=True, kw_only=True)
class WorkflowJob:
    """One job of a run."""

    id: Number
    name: Text
    status: Text
    conclusion: Text | None
    html_url: Text | None = None
    steps: tuple[WorkflowStep, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """What a run left; `digest` is that of the archive as stored, absent from what old actions uploaded."""

    id: Number
    name: Text
    size_in_bytes: Annotated[int, Field(ge=0)]
    expired: bool
    digest: Text | None = None
    expires_at: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file of a release."""

    id: Number
    name: Text
    state: Text
    size: Annotated[int, Field(ge=0)]
    digest: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release."""

    id: Number
    tag_name: Text
    html_url: Text
    draft: bool = False
    prerelease: bool = False


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """Some of a workflow's runs, newest first."""

    workflow_runs: tuple[Run, ...]


@dataclass(frozen=True, kw_only=True)
class JobPage:
    """Some of a run's jobs."""

    jobs: tuple[WorkflowJob, ...]


@dataclass(frozen=True, kw_only=True)
class ArtifactPage:
    """Some of a run's artifacts."""

    artifacts: tuple[Artifact, ...]


def sha256_in(digest: str | None) -> str:
    """Return the SHA-256 of a `digest`, empty when there is none or it is of another kind."""
    match = SHA256.fullmatch(digest or "")
    return match[1] if match else ""


def parsed(kind: type[T], answer: Answer, where: str) -> T:
    """Read an answer. Raises `NetworkError` (`github-unexpected-answer`), which repeats none of its values."""
    try:
        return from_json(kind, answer.body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        words = f"{place}: {first['type']}" if place else str(first["type"])
    # Raised where no exception is handled: pydantic's own holds what was read.
    raise unexpected(where, words)
