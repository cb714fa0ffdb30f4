import threading
from pathlib import Path

import pytest

from ortrim.base.command import stopped_by
from ortrim.devices.farms import farm
from ortrim.errors import Diagnostic, ExitCode, NetworkError, StorageError
from zips import zipped

WHERE = "devicefarm:voice/phones"


def refused(tmp_path: Path, content: bytes, top: str = "") -> Diagnostic:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(Diagnostic) as caught:
        farm.unpack_results(tmp_path / "a.zip", tmp_path / "out", WHERE, top)
    assert caught.value.where == WHERE
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
    return caught.value


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_wherever_it_is(tmp_path: Path) -> None:
    """Only what is below the top folder is unpacked; of several the outermost counts."""
    content = zipped({"x/$Y/top/a": b"1", "x/$Y/top/top/b": b"2", "x/other": b"3", "topper/c": b"4"})
    (tmp_path / "a.zip").write_bytes(content)
    farm.unpack_results(tmp_path / "a.zip", tmp_path / "out", WHERE, "top")
    assert names(tmp_path / "out") == ["a", "top/b"]


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"text", zipped({}), zipped({"a": b"1"})[:-4], zipped({"top": b"a file"}), zipped({"other/a": b""})],
    ids=["nothing", "two-bytes", "text", "empty", "cut-short", "no-folder", "another"],
)
def test_archives_without_results(tmp_path: Path, content: bytes) -> None:
    """What is damaged or holds nothing of results is told as results that are missing."""
    error = refused(tmp_path, content, "top")
    assert (error.code, error.exit_code) == ("farm-results-missing", ExitCode.VERIFY)
    assert error.why


def test_what_is_the_disks_stays_the_disks(tmp_path: Path) -> None:
    """A folder that is not new is no fault of the farm's."""
    (tmp_path / "a.zip").write_bytes(zipped({"a": b"1"}))
    (tmp_path / "out").write_text("")
    with pytest.raises(StorageError) as caught:
        farm.unpack_results(tmp_path / "a.zip", tmp_path / "out", WHERE)
    assert (caught.value.code, caught.value.where) == ("path-in-the-way", str(tmp_path / "out"))


def test_a_destination_has_to_be_new(tmp_path: Path) -> None:
    """A folder, a file or a link to nothing is in the way; a path that is not there yet is not."""
    farm.require_free(tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for path in (tmp_path, tmp_path / "file", tmp_path / "link", tmp_path / "file" / "below"):
        with pytest.raises(StorageError) as caught:
            farm.require_free(path)
        assert caught.value.code == "path-in-the-way"


def test_a_destination_that_came_meanwhile(tmp_path: Path) -> None:
    """What somebody else put there while the run went on is not touched."""
    (tmp_path / "out").mkdir()
    with pytest.raises(StorageError) as caught:
        farm.keep(tmp_path / "out", lambda folder: (folder / "a").touch())
    assert caught.value.code == "path-in-the-way"
    assert names(tmp_path / "out") == []


LOST = NetworkError("farm-unreachable", "cannot be reached")


def asked(failures: int) -> tuple[list[int], Diagnostic | None, str]:
    """Ask for something that fails some times; return how often it was asked, the error and the answer."""
    count: list[int] = []

    def ask() -> str:
        count.append(1)
        if len(count) <= failures:
            raise farm.Transient(LOST)
        return "here"

    try:
        return count, None, farm.persist(ask, (0.0, 0.0))
    except Diagnostic as error:
        return count, error, ""


def test_a_lost_connection_is_tried_again() -> None:
    """What comes back after two failures is taken; a third failure is the answer."""
    assert asked(0) == ([1], None, "here")
    assert asked(2) == ([1, 1, 1], None, "here")
    assert asked(3) == ([1, 1, 1], LOST, "")


def test_the_diagnostic_hides_what_was_before() -> None:
    """A diagnostic is raised without the exception it came in, which a traceback would show."""
    _, error, _ = asked(9)
    assert error is not None
    assert error.__suppress_context__


def followed(stages: list[farm.FarmStage], *, queue_seconds: float = 60, run_seconds: float = 60) -> list[str]:
    """Follow a run through stages, the last of which stays; return what was told."""
    told: list[str] = []

    def look() -> farm.Seen[int]:
        stage = stages.pop(0) if len(stages) > 1 else stages[0]
        return stage, stage.name, 7

    limits = {"queue_seconds": queue_seconds, "run_seconds": run_seconds}
    assert farm.follow(look, told.append, **limits, interval_seconds=0.0) == 7
    return told


def test_waiting_does_not_count_as_running() -> None:
    """What a device is waited for is not taken from the run's time."""
    assert followed([farm.FarmStage.WAITING, farm.FarmStage.DONE], run_seconds=0) == [
        "WAITING",
        "DONE",
    ]


def test_a_pause_hears_of_a_request_to_stop() -> None:
    stop = threading.Event()
    with stopped_by(stop):
        farm.pause(0.0)
        stop.set()
        with pytest.raises(KeyboardInterrupt):
            farm.pause(3600.0)
        farm.pause(0.01)
