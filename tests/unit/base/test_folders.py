import os
import signal
import time
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.cache import locked, locked_if_free, publish_folder, published
from ortrim.errors import StorageError

SPAWN: Final = get_context("spawn")


def fill(folder: Path) -> None:
    """Write one file."""
    (folder / "file").write_text("whole")


def fill_slowly(folder: Path) -> None:
    """Leave a mark in a file beside the folder, and take a while."""
    with (folder.parent / "marks").open("a") as marks:
        marks.write("x")
    time.sleep(0.3)
    fill(folder)


def publish_slowly(destination: Path) -> None:
    """Publish in a process of its own."""
    publish_folder(destination, fill_slowly)


def publish_and_hang(destination: Path, started: Event) -> None:
    """Write half of a folder, say so, and never finish."""

    def half(folder: Path) -> None:
        (folder / "half").write_text("")
        started.set()
        time.sleep(60)

    publish_folder(destination, half)


def hold(path: Path, held: Event, enough: Event) -> None:
    """Hold a lock in a process of its own."""
    with locked(path):
        held.set()
        enough.wait(60)


def names(folder: Path) -> list[str]:
    """Return what a folder holds, but for locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_folder_is_made_once(tmp_path: Path) -> None:
    """The first call fills the folder, the second does not even ask for it."""
    assert publish_folder(tmp_path / "d", fill)
    assert not publish_folder(tmp_path / "d", lambda _: pytest.fail("asked again"))
    assert (tmp_path / "d/file").read_text() == "whole"
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    """What `fill` raises is passed on, the half-made folder is gone, and a second try works."""

    def failing(folder: Path) -> None:
        fill(folder)
        raise error

    with pytest.raises(error):
        publish_folder(tmp_path / "d", failing)
    assert names(tmp_path) == []
    assert publish_folder(tmp_path / "d", fill)


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    """Processes that want the same folder at once wait for one of them to make it."""
    children = [SPAWN.Process(target=publish_slowly, args=(tmp_path / "d",)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    assert (tmp_path / "marks").read_text() == "x"
    assert names(tmp_path) == ["d", "marks"]


def test_killed_process_leaves_no_folder_and_no_lock(tmp_path: Path) -> None:
    """After SIGKILL in the middle there is no folder; the next run makes it and removes what was left."""
    started = SPAWN.Event()
    child = SPAWN.Process(target=publish_and_hang, args=(tmp_path / "d", started))
    child.start()
    assert started.wait(30)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join(30)
    assert not (tmp_path / "d").exists()
    assert len(names(tmp_path)) == 1
    assert publish_folder(tmp_path / "d", fill)
    assert names(tmp_path) == ["d"]


def test_leftovers_of_odd_names_are_found(tmp_path: Path) -> None:
    """Characters that mean something in a pattern are taken literally, and other folders are left alone."""
    (tmp_path / ".a[b].partial-1").mkdir()
    (tmp_path / ".ab.partial-1").mkdir()
    publish_folder(tmp_path / "a[b]", fill)
    assert names(tmp_path) == [".ab.partial-1", "a[b]"]


def test_file_in_the_way(tmp_path: Path) -> None:
    """A file that has the folder's name is a diagnostic and stays as it is."""
    (tmp_path / "d").write_text("mine")
    with pytest.raises(StorageError) as caught:
        publish_folder(tmp_path / "d", fill)
    assert caught.value.code == "path-in-the-way"
    assert names(tmp_path) == ["d"]


def test_lock_in_a_place_that_is_no_folder(tmp_path: Path) -> None:
    """A lock below a file is a diagnostic."""
    (tmp_path / "f").write_text("")
    with pytest.raises(StorageError) as caught, locked(tmp_path / "f/lock"):
        pass
    assert caught.value.code == "path-in-the-way"


def test_error_of_the_body_is_passed_on_as_it_is(tmp_path: Path) -> None:
    """What happens while a lock is held is not taken for trouble with the lock, and the lock is freed."""
    with pytest.raises(FileNotFoundError), locked(tmp_path / "x"):
        (tmp_path / "absent").read_text()
    with locked(tmp_path / "x"):
        pass


def test_who_waits_for_a_lock_is_told_once(tmp_path: Path) -> None:
    """Nothing is said when the lock is free; what was said is said before the waiting."""
    said = []
    with ExitStack() as other:
        other.enter_context(locked(tmp_path / "x", lambda: said.append("at once")))

        def on_wait() -> None:
            said.append("waits")
            other.close()

        with locked(tmp_path / "x", on_wait):
            said.append("holds")
    assert said == ["waits", "holds"]


def test_who_waits_for_a_folder_is_told(tmp_path: Path) -> None:
    """The folder that the other one makes meanwhile is taken; there is none to fill."""
    said = []
    with ExitStack() as other:
        other.enter_context(locked(tmp_path / "d"))

        def on_wait() -> None:
            said.append("waits")
            (tmp_path / "d").mkdir()
            other.close()

        with published(tmp_path / "d", on_wait) as temporary:
            assert temporary is None
    assert said == ["waits"]


def test_a_free_lock_is_taken_and_freed(tmp_path: Path) -> None:
    """While it is held nobody else gets it, afterwards anyone does; the folder for it is made."""
    path = tmp_path / "deep" / "x"
    for _ in range(2):
        with locked_if_free(path) as free, locked_if_free(path) as second:
            assert (free, second) == (True, False)
    with locked(path, lambda: pytest.fail("still held")):
        pass


def test_a_lock_that_is_held_is_not_waited_for(tmp_path: Path) -> None:
    """Not by another process either, whose lock stays its own."""
    held, enough = SPAWN.Event(), SPAWN.Event()
    child = SPAWN.Process(target=hold, args=(tmp_path / "x", held, enough))
    child.start()
    assert held.wait(30)
    for _ in range(2):
        with locked_if_free(tmp_path / "x") as free:
            assert not free
    enough.set()
    child.join(30)
    assert child.exitcode == 0
    with locked_if_free(tmp_path / "x") as free:
        assert free


def test_a_lock_that_cannot_be_made_is_a_diagnostic(tmp_path: Path) -> None:
    """Below a file there is no place for one."""
    (tmp_path / "f").write_text("")
    with pytest.raises(StorageError) as caught, locked_if_free(tmp_path / "f" / "lock"):
        pass
    assert caught.value.code == "path-in-the-way"


def test_an_error_under_a_free_lock_is_passed_on(tmp_path: Path) -> None:
    """It is not taken for trouble with the lock, which is freed."""
    with pytest.raises(FileNotFoundError), locked_if_free(tmp_path / "x"):
        (tmp_path / "absent").read_text()
    with locked_if_free(tmp_path / "x") as free:
        assert free
