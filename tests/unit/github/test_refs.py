"""Which branch a run is started on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from github_checks import Remote, refused, running_remote
from github_service import message
from ortrim.base.command import run
from ortrim.errors import NetworkError
from ortrim.github.client import choose_ref


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Remote]:
    with running_remote(monkeypatch) as running:
        running.service.default_branch = "trunk"
        yield running


def checkout(folder: Path, branch: str, origin: str = "https://github.invalid/Octo/ort.git") -> Path:
    run(("git", "init", "-q", "--initial-branch", branch, folder))
    run(("git", "-C", folder, "remote", "add", "origin", origin))
    return folder


@pytest.mark.parametrize("branch", ["main", "topic/ä-1"])
def test_the_branch_of_the_checkout_is_taken_if_github_has_it(remote: Remote, tmp_path: Path, branch: str) -> None:
    remote.service.refs.add(branch)
    assert choose_ref(remote.client, checkout(tmp_path, branch)) == branch


def test_a_branch_that_was_not_pushed_is_not_taken(remote: Remote, tmp_path: Path) -> None:
    assert choose_ref(remote.client, checkout(tmp_path, "topic")) == "trunk"


@pytest.mark.parametrize("origin", ["https://github.invalid/app/team", "https://elsewhere.invalid/octo/ort"])
def test_the_branch_of_another_checkout_says_nothing(remote: Remote, tmp_path: Path, origin: str) -> None:
    """An app team's own repository has branches of the same name; GitHub is not asked for them."""
    assert choose_ref(remote.client, checkout(tmp_path, "main", origin)) == "trunk"
    assert remote.service.lines() == ["GET /repos/octo/ort 200"]


def test_outside_of_any_checkout_the_default_branch_is_taken(remote: Remote, tmp_path: Path) -> None:
    """As GitHub's own client does."""
    assert choose_ref(remote.client, tmp_path) == "trunk"


def test_a_repository_that_is_not_there_is_reported(remote: Remote, tmp_path: Path) -> None:
    """Or one that the token may not see, which GitHub does not tell apart."""
    remote.service.fault("GET", message(404, "Not Found"))
    assert "--repo" in refused("repository-not-found", NetworkError, choose_ref, remote.client, tmp_path).hint


def test_a_token_that_may_not_look_is_reported(remote: Remote, tmp_path: Path) -> None:
    """Nothing is guessed in its place."""
    remote.service.fault("GET .*/branches", message(403, "no", **{"X-Accepted-GitHub-Permissions": "contents=read"}))
    error = refused("github-refused", NetworkError, choose_ref, remote.client, checkout(tmp_path, "main"))
    assert "contents=read" in error.hint
