"""The folder of a process's temporary files: removed at its end, or by the next run."""

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from ortrim.base.files import (
    code_digest,
    disk_full,
    own_temporary_folder,
    require_space,
    require_writable,
    sha256_of,
    storage_errors,
    write_atomically,
    write_if_changed,
)
from ortrim.errors import ExitCode, StorageError
from refusing import refused


def test_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    assert sha256_of(tmp_path / "f") == hashlib.sha256(b"abc").hexdigest()


def test_digest_of_code_is_that_of_its_statements(tmp_path: Path) -> None:
    """Comments, docstrings and where the folders lie count not; statements and the files' names do."""
    places = [(tmp_path / name for name in names) for names in (("a/one", "b/two"), ("y/one", "x/two"))]
    texts = ("VALUE = 1\n", '"""About it."""\n\n# why\nVALUE = 1\n')
    digests = []
    for folders, text in zip(places, texts, strict=True):
        files = [folder / "code.py" for folder in folders]
        for file in files:
            write_atomically(file, text)
        digests.append(code_digest(files))
    assert digests[0] == digests[1]
    assert code_digest(files[:1]) != digests[0]
    write_atomically(files[0], "VALUE = 2\n")
    assert code_digest(files) != digests[0]


def test_written_file_is_whole_and_readable_by_all(tmp_path: Path) -> None:
    path = tmp_path / "deep/file.txt"
    write_atomically(path, "old")
    write_atomically(path, "neu: ü")
    assert path.read_bytes() == "neu: ü".encode()
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk is full the old content stays, nothing else is left, and the diagnostic says so."""
    path = tmp_path / "file"
    write_atomically(path, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert refused(StorageError, write_atomically, path, "new").code == "disk-full"
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_interrupted_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", "new")
    assert not list(tmp_path.iterdir())


def test_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refused(StorageError, write_atomically, tmp_path / "file/inner", "x").code == "path-in-the-way"


@pytest.mark.parametrize(
    ("number", "reference"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.EACCES, "not-permitted"),
        (errno.EROFS, "not-permitted"),
        (errno.EEXIST, "path-in-the-way"),
        (errno.EIO, "storage-failed"),
    ],
)
def test_each_cause_has_its_own_reference(tmp_path: Path, number: int, reference: str) -> None:
    with pytest.raises(StorageError) as caught, storage_errors(tmp_path):
        raise OSError(number, os.strerror(number))
    assert caught.value.code == reference
    assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize(
    ("place", "remedy"),
    [
        ("cache/sources/x", ", or choose another folder with ORTRIM_CACHE"),
        ("tmp/ortrim.1/work", ", or choose another folder with TMPDIR"),
        ("artifacts/kws", ""),
    ],
)
def test_what_may_not_be_written_has_a_remedy_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, remedy: str
) -> None:
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / place).parent.mkdir(parents=True)
    with pytest.raises(StorageError) as caught, storage_errors(tmp_path / place):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / place))
    assert caught.value.what == "cannot be written by this user"
    assert caught.value.hint == f"give this user write access to {(tmp_path / place).parent}{remedy}"


def test_nobody_is_told_to_open_the_root_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTRIM_CACHE", "/nonexistent/.cache/ortrim")
    with pytest.raises(StorageError) as caught, storage_errors(Path("/nonexistent/.cache/ortrim/models")):
        raise PermissionError(errno.EACCES, "Permission denied", "/nonexistent")
    assert caught.value.hint == "choose another folder with ORTRIM_CACHE"


def test_what_may_not_be_read_is_reported_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.onnx").touch()
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.R_OK)
    with pytest.raises(StorageError) as caught, storage_errors(tmp_path / "m.onnx"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "m.onnx"))
    assert (caught.value.what, caught.value.hint) == ("cannot be read by this user", "give this user read access to it")


def test_a_folder_that_can_be_written_is_found_so_without_being_made(tmp_path: Path) -> None:
    """Asking beforehand leaves nothing behind, however deep the folder is."""
    require_writable(tmp_path / "a" / "b" / "c")
    require_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["file", "file/inside", "dangling"])
def test_a_file_in_the_way_is_found_beforehand(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "absent")
    assert refused(StorageError, require_writable, tmp_path / name).code == "path-in-the-way"


def test_a_folder_without_permission_is_found_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason: the owner, or a file system that is only read."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    caught = refused(StorageError, require_writable, tmp_path / "new")
    assert caught.code == "not-permitted"
    assert caught.hint == f"give this user write access to {tmp_path}, or choose another folder with --output"


def test_a_file_is_written_only_when_its_text_changes(tmp_path: Path) -> None:
    """The same text keeps the file's time, which is what builds go by; its folder is made with it."""
    path = tmp_path / "deep" / "file"
    assert write_if_changed(path, "grün\n")
    os.utime(path, (1, 1))
    assert not write_if_changed(path, "grün\n")
    assert path.stat().st_mtime == 1
    assert write_if_changed(path, "rot\n")
    assert path.stat().st_mtime > 1
    assert path.read_text(encoding="utf-8") == "rot\n"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("before", [b"", b"text\r\n", b"text", b"\xff\xfe"])
def test_other_bytes_are_other_text(tmp_path: Path, before: bytes) -> None:
    """An empty or truncated file, other line ends, and what is no text are replaced."""
    path = tmp_path / "file"
    path.write_bytes(before)
    assert write_if_changed(path, "text\n")
    assert path.read_bytes() == b"text\n"


@pytest.mark.parametrize("name", ["folder", "file/inside"])
def test_something_in_the_way_of_a_changed_file_is_a_diagnostic(tmp_path: Path, name: str) -> None:
    """A folder of its name, or a file in place of its folder; both stay."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert refused(StorageError, write_if_changed, tmp_path / name, "text").code == "path-in-the-way"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[int, int], None]:
    """Give a function that says how large the disk is and how much of it is free; the cache is `tmp_path / "cache"`."""

    def say(total: int, free: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=total, used=total - free, free=free))

    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return say


@pytest.mark.parametrize(
    ("place", "variable"),
    [("cache/trees/one", "ORTRIM_CACHE"), ("temporary", "TMPDIR"), ("temporary/ortrim-x/y", "TMPDIR"),
     ("temporary/mine", ""), ("artifacts", "")],
)  # fmt: skip
def test_a_disk_without_room_is_reported_before_the_work(
    free: Callable[[int, int], None], tmp_path: Path, place: str, variable: str
) -> None:
    """How much is needed, how much is free, where, and the variable that chooses another place if there is one."""
    free(20_000_000, 5_500_000)
    caught = refused(StorageError, require_space, tmp_path / place, 110_000_000, "building")
    error = caught
    assert (error.code, error.exit_code, error.where) == ("disk-full", ExitCode.STORAGE, str(tmp_path / place))
    assert error.what == "building takes about 110 MB, and 5.5 MB are free"
    assert error.why.endswith(" has 5.5 MB free")
    named = [name for name in ("ORTRIM_CACHE", "TMPDIR") if name in error.hint]
    assert named == ([variable] if variable else [])
    assert not (tmp_path / place).exists()


def test_a_disk_with_room_or_of_unknown_size_is_not_judged(
    free: Callable[[int, int], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems say that they have 0 bytes in all, and some say nothing."""
    for total, left in ((20_000_000, 10_000_000), (0, 0)):
        free(total, left)
        require_space(tmp_path, 10_000_000, "building")

    def fail(_: Path) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(shutil, "disk_usage", fail)
    require_space(tmp_path, 10_000_000, "building")


@pytest.mark.parametrize(("left", "reference"), [(0, "disk-full"), (10**9, "storage-failed")])
def test_numpy_has_no_number_for_a_full_disk(
    free: Callable[[int, int], None], tmp_path: Path, left: int, reference: str
) -> None:
    """It says `25000 requested and 8160 written`; what is free tells the rest."""
    free(10**9, left)
    with pytest.raises(StorageError) as caught, storage_errors(tmp_path / "x.npy"):
        raise OSError("25000 requested and 8160 written")
    assert caught.value.code == reference


def test_of_several_places_the_fullest_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler writes to the build tree and to the temporary folder, and does not say which was full."""
    (tmp_path / "b").mkdir()
    sizes = {tmp_path: 10**9, tmp_path / "b": 4096}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(total=10**9, free=sizes[path]))
    assert disk_full("full", tmp_path / "a", tmp_path / "b").where == str(tmp_path / "b")


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
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / "tmp"


def test_temporary_files_lie_together_and_go_together(place: Path) -> None:
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
