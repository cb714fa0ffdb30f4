"""Which runs are a repository's own, of the workflow that is meant."""

import pytest

from ortrim.errors import NetworkError
from ortrim.github.client import ReferencedWorkflow, RepositoryName, Run
from ortrim.github.repositories import Repository
from ortrim.github.runs import require_own_run
from refusing import refused

OCTO = Repository(owner="octo", name="ort")
FILE = ".github/workflows/build.yml"


def run(path: str = FILE, home: str | None = "octo/ort", *called: str) -> Run:
    head = RepositoryName(full_name=home) if home is not None else None
    page = "https://github.invalid/octo/ort/actions/runs/7"
    return Run(
        id=7, status="completed", conclusion="success", html_url=page, path=path, head_repository=head,
        referenced_workflows=tuple(ReferencedWorkflow(path=each) for each in called),
    )  # fmt: skip


@pytest.mark.parametrize("path", [FILE, f"{FILE}@main", f"{FILE}@refs/heads/x@y"])
@pytest.mark.parametrize("home", ["octo/ort", "Octo/ORT"])
def test_a_run_of_the_repository_is_its_own(path: str, home: str) -> None:
    """Whatever the ref, and in GitHub's own capitals."""
    require_own_run(run(path, home), OCTO, "build.yml")


@pytest.mark.parametrize("called", [f"octo/ortrim/{FILE}@refs/tags/v1", f"acme/fork/{FILE}@1a2b", f"octo/ort/{FILE}"])
def test_a_run_that_calls_the_workflow_is_the_repositorys_own(called: str) -> None:
    other = "octo/infra/.github/workflows/x.yml@v1"
    require_own_run(run(".github/workflows/app.yml", "octo/ort", other, called), OCTO, "build.yml")


@pytest.mark.parametrize("home", ["evil/ort", "octo/ort2", "octo", "", None])
def test_a_run_of_a_fork_is_refused(home: str | None) -> None:
    """Also of one that is gone; a new name of the repository is thought of."""
    error = refused(NetworkError, require_own_run, run(FILE, home, f"octo/ortrim/{FILE}@v1"), OCTO, "build.yml")
    assert error.code == "run-not-ours"
    assert error.where.endswith("/7")
    assert error.hint == ("" if home is None else f"if octo/ort has that name now: --repo {home}")


@pytest.mark.parametrize(
    "path",
    ["", ".github/workflows/ci.yml", ".github/workflows/build.yml.yml", ".github/workflows/../build.yml", "build.yml",
     "evil/.github/workflows/build.yml", ".github/workflows/Build.yml", "dynamic/pages/build.yml@main", "@" + FILE],
)  # fmt: skip
def test_a_run_of_another_workflow_is_refused(path: str) -> None:
    """Of a file that is called alike, too, or one that is not named."""
    for called in ((), (path,), ("octo/ortrim/.github/workflows/ci.yml@build.yml",)):
        error = refused(NetworkError, require_own_run, run(path, "octo/ort", *called), OCTO, "build.yml")
    assert error.code == "run-not-ours"
    assert "build.yml" in error.what
