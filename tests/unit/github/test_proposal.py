"""The pull request with new pins: one for each change, with the pins and nothing else."""

import os
from pathlib import Path

import pytest

from fake_programs import FakePrograms, fake_programs
from ortrim.errors import StorageError
from ortrim.github.repositories import TOKEN
from ortrim.pin_updates.new_versions import LARGEST, propose, take_pins
from ortrim.sources.commits import git
from refusing import refused

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


# What another job left


def left(folder: Path, contents: dict[str, str]) -> Path:
    """Leave files among the pins as that job does."""
    for name, content in contents.items():
        path = folder / "proposed" / "src" / "ortrim" / "pins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder / "proposed"


def everything(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts
    }


def test_only_pins_are_taken_from_another_job(repository: Path, tmp_path: Path) -> None:
    """Pins and requirements; whatever else lies there, workflows and the reports among them, stays there."""
    proposed = left(
        tmp_path, {"actions.toml": "new\n", "requirements/new.txt": "a==1\n", "requirements/tools.txt": "b\n"}
    )
    for name in ("bootstrap", "src/ortrim/__init__.py", ".github/workflows/ci.yml", "artifacts/proposal/versions.json"):
        (proposed / name).parent.mkdir(parents=True, exist_ok=True)
        (proposed / name).write_text("evil")
    before = everything(repository)
    take_pins(proposed, repository)
    assert everything(repository) == {
        **before,
        "src/ortrim/pins/actions.toml": "new\n",
        "src/ortrim/pins/requirements/new.txt": "a==1\n",
        "src/ortrim/pins/requirements/tools.txt": "b\n",
    }


@pytest.mark.parametrize(
    "name",
    ["shipped.py", "__init__.py", "actions.toml.py", "requirements/setup.py", "requirements/x.toml", "x.txt",
     "units/x.toml", "Ä.toml", ".hidden.toml", "sub/dir/x.toml", "requirements/deep/x.txt", "-x.toml", "a\nb.toml"],
)  # fmt: skip
def test_something_else_among_the_pins_is_refused(repository: Path, tmp_path: Path, name: str) -> None:
    """Above all what Python would run; nothing is taken then."""
    before = everything(repository)
    assert (
        refused(StorageError, take_pins, left(tmp_path, {"actions.toml": "new\n", name: "evil"}), repository).code
        == "not-a-pin"
    )
    assert everything(repository) == before


@pytest.mark.parametrize("place", ["src/ortrim/pins/x.toml", "src/ortrim/pins/requirements", "src/ortrim/pins"])
def test_a_link_is_not_taken(repository: Path, tmp_path: Path, place: str) -> None:
    """It would bring a file of this machine into a pull request."""
    proposed = left(tmp_path, {"actions.toml": "new\n"})
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "x.txt").write_text("secret")
    (tmp_path / "secret" / "x.toml").write_text("secret")
    link = proposed / place
    if link.is_dir():
        link.rename(tmp_path / "elsewhere")
    link.symlink_to(tmp_path / "secret" / "x.toml" if link.suffix else tmp_path / "secret")
    before = everything(repository)
    assert refused(StorageError, take_pins, proposed, repository).code == "not-a-pin"
    assert everything(repository) == before


def test_what_is_too_large_for_a_pin_is_refused(repository: Path, tmp_path: Path) -> None:
    for content in (b"#" * (LARGEST + 1), b"\xff\xfe"):
        proposed = left(tmp_path, {"actions.toml": ""})
        (proposed / "src/ortrim/pins/actions.toml").write_bytes(content)
        assert refused(StorageError, take_pins, proposed, repository).code == "not-a-pin"
    assert (repository / "src/ortrim/pins/actions.toml").read_text() == "old\n"


def test_a_job_that_left_nothing_is_reported(repository: Path, tmp_path: Path) -> None:
    """The artifact was not downloaded, or is another one."""
    for folder in (tmp_path / "nowhere", repository):
        if folder == repository:
            (folder / "src/ortrim/pins/actions.toml").unlink()
        assert refused(StorageError, take_pins, folder, repository).code == "not-a-pin"
