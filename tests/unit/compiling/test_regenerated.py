import os
import shutil
from pathlib import Path

import pytest

from ortrim.compiling.upstream import unchanged_files_keep_their_time

OLD = 1_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make two old files, one in a subfolder."""
    write(tmp_path / "generated", {"types.inc": "float\n", "deep/provider.cc": "Add\n"})
    for file in (tmp_path / "generated").rglob("*"):
        os.utime(file, (OLD, OLD))
    return tmp_path / "generated"


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files as upstream does: the folder is removed first."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def times(folder: Path) -> dict[str, float]:
    """Return when each file was written."""
    return {file.relative_to(folder).as_posix(): file.stat().st_mtime for file in folder.rglob("*") if file.is_file()}


def test_what_is_written_again_with_the_same_bytes_keeps_its_time(folder: Path) -> None:
    """Ninja finds nothing new in it."""
    with unchanged_files_keep_their_time(folder):
        write(folder, {"types.inc": "float\n", "deep/provider.cc": "Add\n"})
    assert times(folder) == {"types.inc": OLD, "deep/provider.cc": OLD}


def test_the_time_is_restored_to_the_nanosecond(folder: Path) -> None:
    """Ninja compares nanoseconds: a rounded time is another."""
    os.utime(folder / "types.inc", ns=(123, 1_234_567_890_123_456_789))
    with unchanged_files_keep_their_time(folder):
        write(folder, {"types.inc": "float\n"})
    assert (folder / "types.inc").stat().st_mtime_ns == 1_234_567_890_123_456_789


def test_what_has_changed_is_new(folder: Path) -> None:
    """Of the same length or not; the others keep their time."""
    with unchanged_files_keep_their_time(folder):
        write(folder, {"types.inc": "int64\n", "deep/provider.cc": "Add\n"})
    assert times(folder)["types.inc"] > OLD
    assert times(folder)["deep/provider.cc"] == OLD


def test_new_files_are_new_and_missing_ones_stay_away(folder: Path) -> None:
    """A file that moved is a new file, and an empty one that was not there is new too."""
    with unchanged_files_keep_their_time(folder):
        write(folder, {"deep/types.inc": "float\n", "empty": ""})
    found = times(folder)
    assert set(found) == {"deep/types.inc", "empty"}
    assert min(found.values()) > OLD


def test_what_is_left_untouched_stays_as_it_is(folder: Path) -> None:
    """Nothing is written by looking."""
    with unchanged_files_keep_their_time(folder):
        pass
    assert times(folder) == {"types.inc": OLD, "deep/provider.cc": OLD}


def test_a_first_configuration_has_nothing_to_keep(tmp_path: Path) -> None:
    """No folder before, or none after."""
    with unchanged_files_keep_their_time(tmp_path / "generated"):
        write(tmp_path / "generated", {"types.inc": "float\n"})
    assert times(tmp_path / "generated")["types.inc"] > OLD
    with unchanged_files_keep_their_time(tmp_path / "generated"):
        shutil.rmtree(tmp_path / "generated")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_is_passed_on(folder: Path, error: type[BaseException]) -> None:
    """What was half written then is new, so that it is compiled again."""

    def stopped() -> None:
        write(folder, {"types.inc": "flo"})
        raise error

    with pytest.raises(error), unchanged_files_keep_their_time(folder):
        stopped()
    assert times(folder)["types.inc"] > OLD
