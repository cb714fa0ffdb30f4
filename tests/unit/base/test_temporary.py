"""The folder of a process's temporary files: removed at its end, or by the next run."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ortrim.base.files import own_temporary_folder

HOLDER = """
import sys, tempfile, time
from ortrim.base.files import own_temporary_folder
with own_temporary_folder():
    folder = tempfile.mkdtemp(prefix="ortrim-work-")
    open(folder + "/large", "w").write("x")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that is the system's temporary one."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "tmp"


def test_temporary_files_lie_together_and_go_together(place: Path) -> None:
    """Whatever nobody removed, too."""
    with own_temporary_folder():
        kept = Path(tempfile.mkdtemp(prefix="forgotten-"))
        (kept / "file").touch()
        (folder,) = place.iterdir()
        assert kept.parent == folder
        assert folder.stat().st_mode & 0o777 == 0o700
        with own_temporary_folder():
            assert kept.is_dir()
    assert list(place.iterdir()) == []
    assert Path(tempfile.gettempdir()) == place


def test_what_a_killed_process_left_goes_with_the_next_run(place: Path) -> None:
    """And what one that lives still uses stays."""
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        work = Path(holder.stdout.readline().strip())
        with own_temporary_folder():
            assert (work / "large").is_file()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert (work / "large").is_file()
        with own_temporary_folder():
            assert not work.parent.exists()
    finally:
        holder.kill()
        holder.communicate()
    assert list(place.iterdir()) == []


def test_only_own_folders_are_removed(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not other names, not links, not files, not what belongs to another user."""
    (place / "ortrim-of-somebody").mkdir()
    (place / "ortrim.file").touch()
    (tmp_path / "elsewhere").mkdir()
    (place / "ortrim.link").symlink_to(tmp_path / "elsewhere")
    before = sorted(place.iterdir())
    with own_temporary_folder():
        pass
    assert sorted(place.iterdir()) == before
    (place / "ortrim.theirs").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with own_temporary_folder():
        pass
    assert (place / "ortrim.theirs").is_dir()


def test_without_a_place_all_stays_as_it_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that need no temporary file work on a read-only system."""

    def fail(**_: object) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkdtemp", fail)
    with own_temporary_folder():
        assert Path(tempfile.gettempdir()) == place


def test_a_folder_that_another_run_took_for_a_leftover_is_made_anew(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making and locking it, a run that begins at the same moment may remove it."""
    really_open = os.open
    taken: list[Path] = []

    def taken_first(path: str | Path, flags: int, *rest: int) -> int:
        if Path(path).name.startswith("ortrim."):
            monkeypatch.setattr(os, "open", really_open)
            taken.append(Path(path))
            taken[0].rmdir()
        return really_open(path, flags, *rest)

    monkeypatch.setattr(os, "open", taken_first)
    with own_temporary_folder():
        own = Path(tempfile.gettempdir())
        assert (own.parent, own.is_dir(), own in taken) == (place, True, False)
    assert list(place.iterdir()) == []
