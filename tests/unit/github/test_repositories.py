"""Which repository is meant."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.errors import ExitCode, UsageError
from ortrim.github import repositories
from refusing import refused

OCTO = repositories.Repository(owner="octo-org", name="ort.rim")


def test_a_repository_is_written_as_people_do() -> None:
    assert str(OCTO) == "octo-org/ort.rim"
    assert OCTO.path == "/repos/octo-org/ort.rim"
    assert repositories.parse_repository("octo-org/ort.rim") == OCTO


@pytest.mark.parametrize(
    "text",
    ["", "octo", "octo/", "/ort", "octo/ort/x", "octo/..", "octo/.", "oc to/ort", "octo/ort?x", "octo/ort\n", "-o/ort",
     "https://github.com/octo/ort", "o" * 200 + "/ort", "octo/" + "r" * 101, "octo/ört"],
)  # fmt: skip
def test_what_names_no_repository_is_refused(text: str) -> None:
    """It becomes part of addresses."""
    error = refused(UsageError, repositories.parse_repository, text)
    assert error.code == "github-bad-repository"
    assert error.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/octo-org/ort.rim.git",
        "https://github.com/octo-org/ort.rim",
        "https://GitHub.com/octo-org/ort.rim/",
        "https://x-access-token:secret@github.com/octo-org/ort.rim.git",
        "git@github.com:octo-org/ort.rim.git",
        "github.com:octo-org/ort.rim",
        "ssh://git@github.com/octo-org/ort.rim.git",
        "ssh://git@ssh.github.com:443/octo-org/ort.rim.git",
        "git://github.com/octo-org/ort.rim.git",
    ],
)
def test_remotes_are_read_in_every_form(url: str) -> None:
    assert repositories.repository_of_remote(url, "github.com") == OCTO


@pytest.mark.parametrize(
    "url",
    [
        "", "../ort", "/srv/git/octo-org/ort.git", "file:///octo-org/ort", "https://gitlab.com/octo-org/ort",
        "https://github.com.evil.invalid/octo-org/ort", "https://github.com/octo-org", "https://github.com/a/b/c",
        "git@evil.invalid:octo-org/ort", "https://[/octo/ort", "C:/octo-org/ort",
    ],
)  # fmt: skip
def test_remotes_elsewhere_are_none(url: str) -> None:
    """Another host's repository of the same name is another repository."""
    assert repositories.repository_of_remote(url, "github.com") is None


@given(st.text(max_size=60))
def test_any_remote_is_judged(url: str) -> None:
    found = repositories.repository_of_remote(url, "github.com")
    assert found is None or repositories.parse_repository(str(found)) == found


def test_what_is_given_comes_first_then_the_runner_then_git(tmp_path: Path) -> None:
    run(("git", "init", "-q", tmp_path))
    run(("git", "-C", tmp_path, "remote", "add", "origin", "git@github.com:octo-org/ort.rim.git"))
    runner = {"GITHUB_REPOSITORY": "runner/ort"}
    assert str(repositories.find_repository("given/ort", tmp_path, environment=runner)) == "given/ort"
    assert str(repositories.find_repository("", tmp_path, environment=runner)) == "runner/ort"
    assert repositories.find_repository("", tmp_path, environment={}) == OCTO


@pytest.mark.parametrize("remote", ["", "https://me:secret0marker@gitlab.com/octo-org/ort"])
def test_a_folder_without_a_repository_of_the_host_is_reported(tmp_path: Path, remote: str) -> None:
    """A remote's address may hold a password, and is not shown."""
    if remote:
        run(("git", "init", "-q", tmp_path))
        run(("git", "-C", tmp_path, "remote", "add", "origin", remote))
    error = refused(UsageError, repositories.find_repository, "", tmp_path, environment={})
    assert error.code == "github-no-repository"
    assert "--repo" in error.hint
    assert "secret0marker" not in str(error)


def test_without_git_the_repository_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release's app team may have no git."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="no remote 'origin'"):
        repositories.find_repository("", tmp_path, environment={})


def test_the_runners_variable_is_checked_too(tmp_path: Path) -> None:
    assert (
        refused(
            UsageError, repositories.find_repository, "", tmp_path, environment={"GITHUB_REPOSITORY": "a/../b"}
        ).where
        == "GITHUB_REPOSITORY"
    )


@pytest.mark.parametrize(
    ("given", "site"),
    [
        ("octo-org/ort.rim", "github.com/octo-org/ort.rim"),
        ("github.com/octo-org/ort.rim", "github.com/octo-org/ort.rim"),
        ("https://github.com/octo-org/ort.rim.git", "github.com/octo-org/ort.rim"),
        ("https://git.example.org/octo-org/ort.rim/", "git.example.org/octo-org/ort.rim"),
        ("git.example.org:8443/octo-org/ort.rim", "git.example.org:8443/octo-org/ort.rim"),
    ],
)
def test_a_repository_of_another_github_is_named_with_its_host(given: str, site: str, tmp_path: Path) -> None:
    """As GitHub's own client takes it, or by its address."""
    assert str(repositories.find_site(given, tmp_path, environment={})) == site


@pytest.mark.parametrize(
    "given",
    [
        "http://github.com/octo/ort", "https://github.com", "https://github.com/octo", "a/b/c/d", "//octo/ort",
        "https://me:secret0marker@github.com/octo/ort", "git@github.com:octo/ort", "-host/octo/ort", "host/../ort",
        "evil.invalid?x/octo/ort", "evil.invalid#/octo/ort", "host/octo/ort\n", "ssh://github.com/octo/ort", "/a/b",
    ],
)  # fmt: skip
def test_an_address_that_names_no_repository_is_refused(given: str, tmp_path: Path) -> None:
    """No token is sent to where such words lead."""
    assert refused(UsageError, repositories.find_site, given, tmp_path, environment={}).code == "github-bad-repository"


@given(st.text(alphabet="aA0./:@-_?#%\\ \n", max_size=40))
def test_whatever_is_given_names_a_repository_or_is_refused(given: str) -> None:
    try:
        host = repositories.find_site(given, Path("/nowhere"), environment={}).service.host
    except UsageError as error:
        host = error.code
    named = given.removeprefix("https://").partition("/")[0]
    assert host in {"github.com", named, "github-bad-repository", "github-no-repository"}


def test_a_remote_alone_sends_no_token_elsewhere(tmp_path: Path) -> None:
    """What a clone names as its origin was chosen by others; another GitHub is named by the user."""
    run(("git", "init", "-q", tmp_path))
    run(("git", "-C", tmp_path, "remote", "add", "origin", "https://git.example.org/octo-org/ort.rim"))
    assert refused(UsageError, repositories.find_site, "", tmp_path, environment={}).code == "github-no-repository"
    there = repositories.find_site("", tmp_path, environment={"GITHUB_API_URL": "https://git.example.org/api/v3"})
    assert str(there) == "git.example.org/octo-org/ort.rim"


def test_the_branch_is_the_one_checked_out(tmp_path: Path) -> None:
    """None without a repository, or with a commit checked out instead."""
    assert repositories.own_branch(tmp_path) == ""
    run(("git", "init", "-q", "--initial-branch", "topic/x", tmp_path))
    assert repositories.own_branch(tmp_path) == "topic/x"
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    run(("git", "-C", tmp_path, *identity, "commit", "-q", "--allow-empty", "-m", "x"))
    run(("git", "-C", tmp_path, "checkout", "-q", "--detach"))
    assert repositories.own_branch(tmp_path) == ""
