import threading
from pathlib import Path

import pytest

from device_farm_service import zipped
from ortrim.base.command import stopped_by
from ortrim.devices.farm import (
    FarmStage,
    Overdue,
    Seen,
    Transient,
    follow,
    keep,
    pause,
    persist,
    require_free,
    unpack_log,
    unpack_results,
)
from ortrim.devices.harness import encode
from ortrim.errors import Diagnostic, ExitCode, NetworkError, StorageError

WHERE = "devicefarm:voice/phones"


def refused(tmp_path: Path, content: bytes, top: str = "") -> Diagnostic:
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(Diagnostic) as caught:
        unpack_results(tmp_path / "a.zip", tmp_path / "out", WHERE, top)
    assert caught.value.where == WHERE
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]
    return caught.value


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_whole_archive(tmp_path: Path) -> None:
    """Without a top folder all of it is unpacked."""
    (tmp_path / "a.zip").write_bytes(zipped({"a/b": b"1", "c": b"2"}))
    unpack_results(tmp_path / "a.zip", tmp_path / "out", WHERE)
    assert names(tmp_path / "out") == ["a/b", "c"]


def test_a_folder_wherever_it_is(tmp_path: Path) -> None:
    """Only what is below the top folder is unpacked; of several the outermost counts."""
    content = zipped({"x/$Y/top/a": b"1", "x/$Y/top/top/b": b"2", "x/other": b"3", "topper/c": b"4"})
    (tmp_path / "a.zip").write_bytes(content)
    unpack_results(tmp_path / "a.zip", tmp_path / "out", WHERE, "top")
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


@pytest.mark.parametrize("name", ["../a", "top/../../a", "/a", "top\\a", "top/" + "x" * 2000])
def test_archives_that_would_do_harm(tmp_path: Path, name: str) -> None:
    """A name that leads elsewhere spoils all of the archive, wherever in it it is."""
    error = refused(tmp_path, zipped({"top/good": b"1", name: b"2"}), "top")
    assert (error.code, error.exit_code) == ("unsafe-archive", ExitCode.STORAGE)


def test_archives_that_unpack_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an archive claims is added up before anything is written."""
    monkeypatch.setattr("ortrim.devices.farm.LARGEST_RESULTS", 1000)
    assert refused(tmp_path, zipped({"a": b"0" * 600, "b": b"0" * 401})).code == "archive-too-large"


def test_what_is_the_disks_stays_the_disks(tmp_path: Path) -> None:
    """A folder that is not new is no fault of the farm's."""
    (tmp_path / "a.zip").write_bytes(zipped({"a": b"1"}))
    (tmp_path / "out").write_text("")
    with pytest.raises(StorageError) as caught:
        unpack_results(tmp_path / "a.zip", tmp_path / "out", WHERE)
    assert (caught.value.code, caught.value.where) == ("path-in-the-way", str(tmp_path / "out"))


def test_results_in_a_log(tmp_path: Path) -> None:
    """The archive that travelled in the log is unpacked and nothing of it stays."""
    (tmp_path / "log").write_text("\n".join(encode(zipped({"a": b"1"}))))
    assert unpack_log(tmp_path / "log", tmp_path / "out", WHERE)
    assert names(tmp_path) == ["log", "out/a"]


def test_a_log_without_results(tmp_path: Path) -> None:
    """A log of others', whatever bytes it holds, is none of ours."""
    (tmp_path / "log").write_bytes(b"\xff\xfe ortrim-result \x00\n")
    assert not unpack_log(tmp_path / "log", tmp_path / "out", WHERE)
    assert names(tmp_path) == ["log"]


def test_a_log_with_half_of_them(tmp_path: Path) -> None:
    """What is lost is reported."""
    (tmp_path / "log").write_text(encode(zipped({"a": b"1"}))[0])
    with pytest.raises(Diagnostic) as caught:
        unpack_log(tmp_path / "log", tmp_path / "out", WHERE)
    assert (caught.value.code, caught.value.where) == ("farm-results-missing", WHERE)


def test_a_destination_has_to_be_new(tmp_path: Path) -> None:
    """A folder, a file or a link to nothing is in the way; a path that is not there yet is not."""
    require_free(tmp_path / "a" / "b")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for path in (tmp_path, tmp_path / "file", tmp_path / "link", tmp_path / "file" / "below"):
        with pytest.raises(StorageError) as caught:
            require_free(path)
        assert caught.value.code == "path-in-the-way"


def test_a_destination_that_came_meanwhile(tmp_path: Path) -> None:
    """What somebody else put there while the run went on is not touched."""
    (tmp_path / "out").mkdir()
    with pytest.raises(StorageError) as caught:
        keep(tmp_path / "out", lambda folder: (folder / "a").touch())
    assert caught.value.code == "path-in-the-way"
    assert names(tmp_path / "out") == []


LOST = NetworkError("farm-unreachable", "cannot be reached")


def asked(failures: int) -> tuple[list[int], Diagnostic | None, str]:
    """Ask for something that fails some times; return how often it was asked, the error and the answer."""
    count: list[int] = []

    def ask() -> str:
        count.append(1)
        if len(count) <= failures:
            raise Transient(LOST)
        return "here"

    try:
        return count, None, persist(ask, (0.0, 0.0))
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


def test_what_does_not_pass_is_not_tried_again() -> None:
    """A diagnostic by itself is final."""
    count: list[int] = []

    def ask() -> None:
        count.append(1)
        raise LOST

    with pytest.raises(NetworkError):
        persist(ask, (0.0, 0.0))
    assert count == [1]


def followed(stages: list[FarmStage], *, queue_seconds: float = 60, run_seconds: float = 60) -> list[str]:
    """Follow a run through stages, the last of which stays; return what was told."""
    told: list[str] = []

    def look() -> Seen[int]:
        stage = stages.pop(0) if len(stages) > 1 else stages[0]
        return stage, stage.name, 7

    limits = {"queue_seconds": queue_seconds, "run_seconds": run_seconds}
    assert follow(look, told.append, **limits, interval_seconds=0.0) == 7
    return told


def test_each_change_is_reported_once() -> None:
    """A run is looked at until it is done."""
    stages = [FarmStage.WAITING, FarmStage.WAITING, FarmStage.RUNNING, FarmStage.RUNNING, FarmStage.DONE]
    assert followed(stages) == ["WAITING", "RUNNING", "DONE"]


def test_waiting_has_an_end() -> None:
    """A run that does not begin in time is overdue at waiting."""
    with pytest.raises(Overdue, match="waiting for more than 0 seconds") as caught:
        followed([FarmStage.WAITING], queue_seconds=0)
    assert caught.value.stage is FarmStage.WAITING


def test_running_has_an_end() -> None:
    """A run that does not end in time is overdue at running, even when the farm calls it waiting again."""
    with pytest.raises(Overdue) as caught:
        followed([FarmStage.RUNNING, FarmStage.WAITING], run_seconds=0)
    assert caught.value.stage is FarmStage.RUNNING


def test_waiting_does_not_count_as_running() -> None:
    """What a device is waited for is not taken from the run's time."""
    assert followed([FarmStage.WAITING, FarmStage.DONE], run_seconds=0) == [
        "WAITING",
        "DONE",
    ]


def test_a_run_that_is_done_is_never_overdue() -> None:
    """A run that has ended when it is first looked at counts."""
    assert followed([FarmStage.DONE], queue_seconds=0, run_seconds=0) == ["DONE"]


def test_a_pause_hears_of_a_request_to_stop() -> None:
    """A thread that is asked to stop does not sleep to the end; what it does to clean up is left alone."""
    stop = threading.Event()
    with stopped_by(stop):
        pause(0.0)
        stop.set()
        with pytest.raises(KeyboardInterrupt):
            pause(3600.0)
        pause(0.01)
