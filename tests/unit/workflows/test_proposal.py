"""The pull request with new pins: one for each change, with the pins and nothing else."""

import os
from pathlib import Path

import pytest

from fake_programs import FakePrograms, fake_programs
from ortrim.sources.git import git
from ortrim.tools.github_cli import TOKEN
from ortrim.workflows.proposal import propose

pytestmark = pytest.mark.needs("git")
ADDRESS = "https://github.com/some/repository/pull/7"
SECRET = "ghs_0123456789"  # noqa: S105 - made up


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    """Have a `gh` that opens pull requests, and no settings of git's own."""
    monkeypatch.setenv(TOKEN, SECRET)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    made = fake_programs(tmp_path / "programs", monkeypatch, "gh")
    made.answer("gh", "pr", "create", stdout=f"{ADDRESS}\n")
    return made


@pytest.fixture
def repository(tmp_path: Path, programs: FakePrograms) -> Path:
    """Return a clone with pins and a workflow."""
    origin, clone = tmp_path / "origin.git", tmp_path / "clone"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    git(tmp_path, "clone", "--quiet", str(origin), str(clone))
    for name in ("src/ortrim/pins/actions.toml", ".github/workflows/ci.yml", "README.md"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("old\n")
    git(clone, "add", ".")
    git(clone, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "--quiet", "--message", "first")
    git(clone, "push", "--quiet", "origin", "HEAD:refs/heads/main")
    return clone


def branches(repository: Path) -> list[str]:
    """Return the branches of the repository's origin but main."""
    listed = git(repository, "ls-remote", "--heads", "origin").splitlines()
    return [line.partition("refs/heads/")[2] for line in listed if not line.endswith("/main")]


def test_changed_pins_are_proposed(repository: Path, programs: FakePrograms) -> None:
    """On a branch of their own, without anything else that lies about."""
    (repository / "src/ortrim/pins/actions.toml").write_text("new\n")
    (repository / "src/ortrim/pins/onnxruntime-9.toml").write_text("new\n")
    (repository / "README.md").write_text("changed by accident\n")
    (repository / ".github/workflows/ci.yml").write_text("changed, which no workflow may do\n")
    (repository / "stray").write_text("x")
    assert propose(repository, "the body") == ADDRESS
    (branch,) = branches(repository)
    changed = git(repository, "diff", "--name-only", "origin/main", "HEAD").split()
    assert changed == ["src/ortrim/pins/actions.toml", "src/ortrim/pins/onnxruntime-9.toml"]
    ((_, *words),) = programs.calls
    assert words[:4] == ["pr", "create", "--head", branch]
    assert SECRET not in " ".join(words)


def test_nothing_new_is_not_proposed(repository: Path, programs: FakePrograms) -> None:
    """There is no empty pull request."""
    (repository / "README.md").write_text("changed by accident\n")
    assert propose(repository, "") is None
    assert (branches(repository), programs.calls) == ([], [])


def test_the_same_change_is_proposed_once(repository: Path, programs: FakePrograms) -> None:
    """The week after, while nobody has looked at it; another change has another branch."""
    pins = repository / "src/ortrim/pins/actions.toml"
    for text, proposed in (("new\n", True), ("new\n", False), ("newer\n", True)):
        git(repository, "reset", "--quiet", "--hard", "origin/main")
        pins.write_text(text)
        assert (propose(repository, "") is not None) == proposed
    assert len(branches(repository)) == 2
