"""The pins of actions: by commit, and what has none is refused."""

import re
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, SourcesError
from ortrim.pins.shipped import ACTIONS_FILE, action_pins, action_reference, read_action_pins

COMMIT = "0123456789abcdef0123456789abcdef01234567"
WHOLE = f'[actions."actions/cache"]\ntag = "v6.1.0"\ncommit = "{COMMIT}"\n[actions."some/one"]\ntag = "v1"\n'


def test_an_action_is_named_by_its_commit() -> None:
    """The tag is a comment; a folder below the action's own repository has the repository's commit."""
    pins = read_action_pins(WHOLE)
    assert action_reference(pins, "actions/cache") == f"actions/cache@{COMMIT} # v6.1.0"
    assert action_reference(pins, "actions/cache/restore") == f"actions/cache/restore@{COMMIT} # v6.1.0"


@pytest.mark.parametrize("name", ["some/one", "some/one/deeper", "no/body", "actions", "", "Actions/cache"])
def test_an_action_without_commit_is_refused(name: str) -> None:
    """Nobody invents a commit: the action is named, with what fills it in."""
    with pytest.raises(SourcesError) as caught:
        action_reference(read_action_pins(WHOLE), name)
    assert (caught.value.code, caught.value.exit_code) == ("action-not-pinned", ExitCode.SOURCES)
    assert caught.value.where == f"{ACTIONS_FILE}: {name}"
    assert "invoke pins.update --actions" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "[actions",
        'actions = "all"\n',
        "[actions.checkout]\ntag = 'v1'\n",
        '[actions."actions/checkout"]\n',
        f'[actions."actions/checkout"]\ncommit = "{COMMIT}"\n',
        '[actions."actions/checkout"]\ntag = "main"\n',
        '[actions."actions/checkout"]\ntag = "v1 # x"\n',
        '[actions."actions/checkout"]\ntag = "v1"\ncommit = "v1"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT[:12]}"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT.upper()}"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT}\\nrun: x"\n',
        f'[actions."actions/checkout"]\ntag = "v1"\ncommit = "{COMMIT}"\nbranch = "main"\n',
        f'[actions."actions/checkout\\n- run"]\ntag = "v1"\ncommit = "{COMMIT}"\n',
    ],
)
def test_a_damaged_file_is_refused(text: str) -> None:
    """Whatever is no tag and no commit; a short commit could be another's."""
    with pytest.raises(SourcesError) as caught:
        read_action_pins(text)
    assert (caught.value.code, caught.value.where) == ("bad-pin-file", ACTIONS_FILE)


def test_the_pins_that_travel_with_ortrim_are_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each has a commit of its own."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    pins = action_pins()
    commits = [pin.commit or "" for pin in pins.values()]
    assert len(set(commits)) == len(pins) > 3
    assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in commits)


def test_own_pins_come_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A company's own forks of the actions are used when it says so."""
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path))
    (tmp_path / ACTIONS_FILE).write_text(WHOLE)
    assert set(action_pins()) == {"actions/cache", "some/one"}
