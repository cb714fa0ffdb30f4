"""GitHub's own program: its token stays where it is."""

from pathlib import Path

import pytest

from fake_programs import FakePrograms, fake_programs
from ortrim.errors import NetworkError, ToolError
from ortrim.github.repositories import TOKEN, gh
from refusing import refused

SECRET = "ghs_0123456789"  # noqa: S105 - made up


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    monkeypatch.setenv(TOKEN, SECRET)
    return fake_programs(tmp_path / "programs", monkeypatch, "gh")


def test_it_answers(programs: FakePrograms) -> None:
    programs.answer("gh", "release", "view", stdout="{}\n")
    assert gh("release", "view", "v1.0.0") == "{}\n"
    assert programs.calls == [["gh", "release", "view", "v1.0.0"]]


def test_a_failure_is_reported_in_its_words_without_the_token(programs: FakePrograms) -> None:
    programs.answer("gh", stderr=f"HTTP 401: Bad credentials ({SECRET})\n", code=1)
    error = refused(NetworkError, gh, "release", "view", "v1.0.0")
    assert error.code == "gh-failed"
    assert error.why == "HTTP 401: Bad credentials (...)"
    assert SECRET not in str(error)


@pytest.mark.parametrize("token", [None, ""])
def test_without_a_token_it_is_not_started(
    programs: FakePrograms, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    """It would ask, and nobody is there to answer."""
    monkeypatch.delenv(TOKEN) if token is None else monkeypatch.setenv(TOKEN, token)
    assert refused(ToolError, gh, "release", "view", "v1.0.0").code == "gh-without-token"
    assert programs.calls == []
