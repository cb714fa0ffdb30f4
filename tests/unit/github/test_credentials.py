"""The token, and how it is kept from being seen."""

import copy
import os
import pickle
import stat
from pathlib import Path

import pytest

from ortrim.base.http import new_session
from ortrim.errors import ExitCode, NetworkError, StorageError, UsageError
from ortrim.github.client import Bearer
from ortrim.github.repositories import Token, find_token
from refusing import refused

SECRET = "ghs_secret0marker"  # noqa: S105


def fake_gh(folder: Path, text: str, code: int = 0) -> dict[str, str]:
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
    with new_session(Bearer(Token(SECRET))) as session:
        assert SECRET not in f"{session!r} {vars(session)} {session.headers}"


NAMES = ("GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
OWN_API = "https://git.example.org/api/v3"


def found(host: str, names: tuple[str, ...], **environment: str) -> str:
    tokens = {name: f"token-of-{name}" for name in names}
    token = find_token(host, environment={"PATH": "", **tokens, **environment})
    return token.reveal().removeprefix("token-of-") if token else ""


@pytest.mark.parametrize("host", ["github.com", "GitHub.com", "firm.ghe.com", "Firm.GHE.com"])
def test_general_tokens_are_for_githubs_own_hosts(host: str) -> None:
    assert found(host, NAMES) == "GH_TOKEN"
    assert found(host, NAMES[1:]) == "GITHUB_TOKEN"
    assert found(host, NAMES[2:]) == ""


@pytest.mark.parametrize(
    "host",
    ["git.example.org", "evil.example", "evil.example:443", "ghe.com", "evilghe.com", "github.com.evil.example",
     "firm.ghe.com.evil.example", "github.com:8443", "api.github.com"],
)  # fmt: skip
def test_no_other_host_gets_githubs_token(host: str) -> None:
    """Whoever puts it into `--repo` or into a lock file: there are variables for servers of one's own."""
    assert found(host, NAMES[:2]) == ""
    assert found(host, NAMES) == "GH_ENTERPRISE_TOKEN"
    assert found(host, (*NAMES[:2], NAMES[3])) == "GITHUB_ENTERPRISE_TOKEN"
    assert found(host, NAMES[:2], GITHUB_API_URL=OWN_API if host != "git.example.org" else "https://x.org/api/v3") == ""


def test_the_environment_may_name_the_server_that_its_token_is_for() -> None:
    """As the runners of GitHub Enterprise Server do; one for such servers still comes first."""
    assert found("git.example.org", NAMES[:2], GITHUB_API_URL=OWN_API) == "GH_TOKEN"
    assert found("Git.Example.org", NAMES[1:2], GITHUB_API_URL=OWN_API) == "GITHUB_TOKEN"
    assert found("git.example.org", NAMES, GITHUB_API_URL=OWN_API) == "GH_ENTERPRISE_TOKEN"


def test_githubs_own_client_does_not_pass_githubs_token_on(tmp_path: Path) -> None:
    given = {**fake_gh(tmp_path, ""), "GITHUB_TOKEN": SECRET, "GH_TOKEN": SECRET, "CODESPACES": "true"}
    (tmp_path / "bin" / "gh").write_text('#!/bin/sh\nprintf "%s" "$GITHUB_TOKEN$GH_TOKEN"\n')
    assert find_token("evil.example", environment=given) is None


def test_an_address_of_the_environment_that_is_none_is_reported() -> None:
    """Or the wrong server would be taken for the one that the token is for."""
    assert (
        refused(
            UsageError,
            find_token,
            "git.example.org",
            environment={"GITHUB_API_URL": "git.example.org", "GH_TOKEN": SECRET},
        ).code
        == "github-bad-address"
    )


def test_a_file_comes_first(tmp_path: Path) -> None:
    """Whoever names one means it; the line's end does not belong to it."""
    (tmp_path / "token").write_text(f"{SECRET}\n")
    token = find_token(file=tmp_path / "token", environment={"GH_TOKEN": "other"})
    assert token is not None
    assert token.reveal() == SECRET


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    """By name, and nothing else is tried."""
    assert (
        refused(StorageError, find_token, file=tmp_path / "token", environment={"GH_TOKEN": "other"}).exit_code
        == ExitCode.STORAGE
    )


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
        error = refused(NetworkError, find_token, **options)
        assert error.code == "github-bad-token"
        assert error.exit_code == ExitCode.NETWORK
        assert SECRET not in str(error)
