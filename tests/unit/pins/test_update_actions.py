"""Newer actions: the newest release by its number, with the commit that its tag names."""

import os
from pathlib import Path

import pytest

from ortrim.errors import DiagnosticGroup
from ortrim.pin_updates.update import HOST, update_action_pins
from ortrim.pins.shipped import ACTIONS_FILE, action_reference, read_action_pins
from ortrim.sources.commits import git
from refusing import refused

pytestmark = pytest.mark.needs("git")
OLD = """\
# A comment that stays.

[actions."actions/checkout"]
tag = "v1.0.0"
commit = "0123456789abcdef0123456789abcdef01234567"

# Another.
[actions."some/one"]
tag = "v1.0.0"
"""


@pytest.fixture
def pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pins"
    folder.mkdir()
    (folder / ACTIONS_FILE).write_text(OLD)
    monkeypatch.setenv("ORTRIM_PINS", str(folder))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    return folder


def repository(path: Path, *tags: str, annotated: tuple[str, ...] = ()) -> dict[str, str]:
    path.mkdir(parents=True)
    git(path, "init", "--quiet")
    commits = {}
    for tag in tags:
        own = ("-c", "user.name=x", "-c", "user.email=x@y")
        git(path, *own, "commit", "--quiet", "--allow-empty", "--message", tag)
        git(path, *own, "tag", *(("--annotate", "--message", "x") if tag in annotated else ()), tag)
        commits[tag] = git(path, "rev-parse", "HEAD").strip()
    return commits


def update(tmp_path: Path) -> Path:
    return update_action_pins(mirrors=((HOST, f"{tmp_path}/hub/"),), announce=lambda _: None)


def test_the_newest_release_is_pinned_by_its_commit(tmp_path: Path, pins: Path) -> None:
    """By number, not by alphabet nor by date; floating tags and candidates are none; comments stay."""
    tags = ("v9.0.0", "v10.0.1", "v10", "v11.0.0-rc1", "v2.0.0", "latest")
    first = repository(tmp_path / "hub" / "actions" / "checkout", *tags)
    second = repository(tmp_path / "hub" / "some" / "one", "v1.0.0", annotated=("v1.0.0",))
    assert update(tmp_path) == pins / ACTIONS_FILE
    text = (pins / ACTIONS_FILE).read_text()
    updated = read_action_pins(text)
    assert action_reference(updated, "actions/checkout") == f"actions/checkout@{first['v10.0.1']} # v10.0.1"
    assert action_reference(updated, "some/one") == f"some/one@{second['v1.0.0']} # v1.0.0"
    assert [line for line in text.splitlines() if line.startswith("#")] == ["# A comment that stays.", "# Another."]


@pytest.mark.parametrize("tags", [("v1",), (), ("1.0.0", "vx.y.z")])
def test_an_action_without_a_release_keeps_its_pin(tmp_path: Path, pins: Path, tags: tuple[str, ...]) -> None:
    repository(tmp_path / "hub" / "actions" / "checkout", *tags)
    repository(tmp_path / "hub" / "some" / "one", "v2.0.0")
    caught = refused(DiagnosticGroup, update, tmp_path)
    assert caught.code == "no-release"
    updated = read_action_pins((pins / ACTIONS_FILE).read_text())
    assert updated["actions/checkout"] == read_action_pins(OLD)["actions/checkout"]
    assert updated["some/one"].tag == "v2.0.0"


def test_a_repository_that_is_not_there_is_reported(tmp_path: Path, pins: Path) -> None:
    caught = refused(DiagnosticGroup, update, tmp_path)
    assert [each.code for each in caught.diagnostics] == ["git-failed"] * 2
    assert (pins / ACTIONS_FILE).read_text() == OLD
