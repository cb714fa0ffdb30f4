"""The token, and how it is kept from being seen."""

import copy
import os
import pickle
import stat
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, NetworkError, StorageError
from ortrim.github.credentials import Token, find_token
from ortrim.github.wire import Bearer, new_session

SECRET = "ghs_secret0marker"  # noqa: S105


def fake_gh(folder: Path, text: str, code: int = 0) -> dict[str, str]:
    """Put a `gh` on PATH that prints `text`, and notes what it was called with; returns the environment."""
    program = folder / "bin" / "gh"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho \"$@\" > '{folder}/called'\nprintf '%s' '{text}'\nexit {code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{program.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"}


@pytest.mark.parametrize(
    "shown",
    [
        repr, str, "{}".format, "{!r}".format, "%s".__mod__, lambda token: repr([token]),
        lambda token: repr(vars(Bearer(token))),
    ],
)  # fmt: skip
def test_a_token_shows_itself_to_nobody(shown: object) -> None:
    """However it is printed."""
    assert callable(shown)
    assert SECRET not in shown(Token(SECRET))
    assert Token(SECRET).reveal() == SECRET


@pytest.mark.parametrize("store", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_token_is_not_stored(store: object) -> None:
    """Pickled into a cache or a crash report it would be in the clear."""
    assert callable(store)
    with pytest.raises(TypeError, match="not stored"):
        store(Token(SECRET))


def test_a_token_is_taken_out_of_what_others_say() -> None:
    """A server may repeat it in its message."""
    assert Token(SECRET).redacted(f"no {SECRET}!") == "no [token]!"


def test_a_session_shows_no_token() -> None:
    """Its headers and its own words hold none."""
    with new_session(Token(SECRET)) as session:
        assert SECRET not in f"{session!r} {vars(session)} {session.headers}"


@pytest.mark.parametrize(
    ("host", "names", "chosen"),
    [
        ("github.com", ("GITHUB_TOKEN",), "GITHUB_TOKEN"),
        ("github.com", ("GITHUB_TOKEN", "GH_TOKEN"), "GH_TOKEN"),
        ("github.com", ("GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN"), "GITHUB_TOKEN"),
        ("firm.ghe.com", ("GH_TOKEN", "GH_ENTERPRISE_TOKEN"), "GH_TOKEN"),
        ("git.example.org", ("GH_TOKEN", "GH_ENTERPRISE_TOKEN"), "GH_ENTERPRISE_TOKEN"),
        ("git.example.org", ("GITHUB_TOKEN", "GITHUB_ENTERPRISE_TOKEN"), "GITHUB_ENTERPRISE_TOKEN"),
        ("git.example.org", ("GITHUB_TOKEN",), "GITHUB_TOKEN"),
    ],
)
def test_the_environment_has_an_order(host: str, names: tuple[str, ...], chosen: str) -> None:
    """That of GitHub's own client."""
    token = find_token(host, environment={name: f"token-of-{name}" for name in names})
    assert token is not None
    assert token.reveal() == f"token-of-{chosen}"


def test_a_file_comes_first(tmp_path: Path) -> None:
    """Whoever names one means it; the line's end does not belong to it."""
    (tmp_path / "token").write_text(f"{SECRET}\n")
    token = find_token(file=tmp_path / "token", environment={"GH_TOKEN": "other"})
    assert token is not None
    assert token.reveal() == SECRET


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """By name, and nothing else is tried."""
    with pytest.raises(StorageError) as caught:
        find_token(file=tmp_path / "token", environment={"GH_TOKEN": "other"})
    assert caught.value.exit_code == ExitCode.STORAGE


def test_githubs_own_client_is_asked(tmp_path: Path) -> None:
    """It may keep the token in the system's keyring; an empty variable counts as none."""
    token = find_token("git.example.org", environment={**fake_gh(tmp_path, f"{SECRET}\n"), "GH_TOKEN": " "})
    assert token is not None
    assert token.reveal() == SECRET
    assert (tmp_path / "called").read_text() == "auth token --hostname git.example.org\n"


@pytest.mark.parametrize(("text", "code"), [("", 0), (SECRET, 1), ("not logged in", 4)])
def test_without_any_there_is_none(tmp_path: Path, text: str, code: int) -> None:
    """Not logged in, or no client at all."""
    assert find_token(environment=fake_gh(tmp_path, text, code)) is None
    assert find_token(environment={"PATH": str(tmp_path)}) is None


@pytest.mark.parametrize(
    "text", [f"{SECRET}\n{SECRET}", f"{SECRET} x", f"{SECRET}\x00", f"{SECRET}\u00e4", "abc", "x" * 5000]
)
def test_what_cannot_be_a_token_is_refused_unseen(tmp_path: Path, text: str) -> None:
    """A header cannot hold it; the library that says so would print it."""
    (tmp_path / "token").write_text(text)
    for options in ({"environment": {"GH_TOKEN": text}}, {"file": tmp_path / "token", "environment": {}}):
        with pytest.raises(NetworkError) as caught:
            find_token(**options)
        assert caught.value.reference == "github-bad-token"
        assert caught.value.exit_code == ExitCode.NETWORK
        assert SECRET not in str(caught.value)
