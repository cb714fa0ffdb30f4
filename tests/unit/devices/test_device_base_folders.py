import pytest

from ortrim.devices.adb import known_error
from ortrim.devices.remote import VARIABLES, base_folder, other_folder
from ortrim.devices.ssh import ssh_error
from ortrim.errors import ExitCode, UsageError
from refusing import refused


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


def test_a_board_has_the_folder_that_its_user_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of machine has a variable of its own; an empty one says nothing."""
    monkeypatch.setenv("ORTRIM_SSH_FOLDER", "/mnt/data disk")
    assert base_folder("ssh", "/usual") == "/mnt/data disk"
    assert base_folder("adb", "/data/local/tmp") == "/data/local/tmp"
    monkeypatch.setenv("ORTRIM_SSH_FOLDER", "")
    assert base_folder("ssh", "/usual") == "/usual"


@pytest.mark.parametrize("folder", ["tmp", "~/x", "./x", "/a\nb", "-x"])
def test_what_is_no_whole_path(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Where it would end is nobody's guess."""
    monkeypatch.setenv("ORTRIM_ADB_FOLDER", folder)
    error = refused(UsageError, base_folder, "adb", "/data/local/tmp")
    assert (error.code, error.where) == ("bad-folder", "ORTRIM_ADB_FOLDER")
    assert error.exit_code == ExitCode.USAGE
    assert "/data/local/tmp" in error.hint


@pytest.mark.parametrize("words", ["Permission denied", "Read-only file system"])
def test_hints_name_the_variable(words: str) -> None:
    """Of the kind of machine that they are about, and it is one that is read."""
    for error, variable in (
        (known_error(words, "R58"), "ORTRIM_ADB_FOLDER"),
        (ssh_error(words, "board"), "ORTRIM_SSH_FOLDER"),
    ):
        assert error is not None
        assert variable in error.hint
    assert "ORTRIM_ADB_FOLDER or ORTRIM_SSH_FOLDER" in other_folder("other:1")
