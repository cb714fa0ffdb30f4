"""Compiled objects on their way to another machine."""

import errno
import tarfile
from pathlib import Path
from typing import Final

import pytest

from fake_sources import private_cache
from loopback_service import Asked, LoopbackService, Reply
from ortrim.base.cache import cache_folder, kept_folder
from ortrim.base.files import sha256_of
from ortrim.errors import Diagnostic, ExitCode
from ortrim.package.package import write_archive
from ortrim.pipeline.object_archive import ObjectArchive, take_objects, write_objects
from refusing import refused

DIGEST: Final = "274e06f38ba217465419dcca57b023f645c71b"
OTHER: Final = "8d4019136cc1126ad47ffe2ef96510b4520177"
TARGET: Final = "x86_64-linux-gnu.2.28"


class Release(LoopbackService):
    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def name_of(self, asked: Asked) -> str:
        return asked.path

    def answer(self, asked: Asked) -> Reply:
        del asked
        return Reply(body=self.file.read_bytes())


def compiled() -> Path:
    return cache_folder("compiler") / "ccache"


def put(name: str, text: str) -> None:
    path = compiled() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(name="archive")
def fixture_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectArchive:
    """Write an archive of what was compiled elsewhere; here the cache is empty."""
    private_cache(tmp_path / "there", monkeypatch)
    put(f"3/3/{DIGEST}", "object")
    put(f"a/b/{OTHER}", "another")
    for name in ("3/3/stats", "ccache.conf", "tmp/cpp_stdout.x", "lock/1"):
        put(name, "")
    with kept_folder(cache_folder("zig") / TARGET) as kept:
        for name in ("o/1/libc.a", "tmp/half"):
            (kept.path / name).parent.mkdir(parents=True)
            (kept.path / name).write_text("library")
    own = cache_folder("zig") / "o" / "1" / "libc.a"
    own.parent.mkdir(parents=True)
    own.write_text("where zig worked without a target's folder")
    written = write_objects(tmp_path / "objects.tar.gz")
    assert own.is_file()
    private_cache(tmp_path / "here", monkeypatch)
    return written


def taken() -> dict[str, str]:
    folder = cache_folder("compiler").parent
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


ALL: Final = {
    f"compiler/ccache/3/3/{DIGEST}": "object",
    f"compiler/ccache/a/b/{OTHER}": "another",
    f"zig/{TARGET}/o/1/libc.a": "library",
}


def test_objects_arrive_as_they_left(archive: ObjectArchive) -> None:
    """Without ccache's own accounts, which are of another machine, and without what was half done."""
    assert (archive.objects, archive.targets) == (2, (TARGET,))
    arrived = take_objects(archive.path, archive.sha256)
    assert taken() == ALL
    assert (arrived.objects, arrived.added, arrived.targets) == (2, 2, (TARGET,))
    with kept_folder(cache_folder("zig") / TARGET) as kept:
        assert (kept.path / "o/1/libc.a").is_file()


def test_an_archive_tells_nothing_of_the_machine(archive: ObjectArchive) -> None:
    with tarfile.open(archive.path) as file:
        facts = {(entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime) for entry in file}
    assert facts == {(0, 0, "", "", 0)}


def test_what_is_here_stays(archive: ObjectArchive) -> None:
    """A build may be reading it; the second time nothing is new."""
    put(f"3/3/{DIGEST}", "own")
    assert take_objects(archive.path, archive.sha256).added == 1
    assert taken() == ALL | {f"compiler/ccache/3/3/{DIGEST}": "own"}
    assert take_objects(archive.path, archive.sha256).added == 0


def test_what_a_killed_one_left_goes(archive: ObjectArchive) -> None:
    """It would take the disk's space for ever."""
    left = cache_folder("compiler") / ".archive-of-a-killed-one" / "unpacked"
    left.mkdir(parents=True)
    take_objects(archive.path, archive.sha256)
    assert not left.parent.exists()


def test_a_full_disk_leaves_no_half_of_a_library(archive: ObjectArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zig would believe it; the archive is taken again when there is space."""

    def half(source: Path, destination: Path, **_: object) -> None:
        (destination / "libc.a").write_text((source / "o/1/libc.a").read_text()[:3])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("ortrim.compiling.workspace.shutil.copytree", half)
        caught = refused(Diagnostic, take_objects, archive.path, archive.sha256)
    assert caught.exit_code == ExitCode.STORAGE
    assert not any(name.startswith("zig/") for name in taken())
    take_objects(archive.path, archive.sha256)
    assert taken() == ALL


def test_an_archive_comes_from_an_address(archive: ObjectArchive) -> None:
    service = Release(Path(archive.path))
    assert take_objects(f"{service.address}/objects.tar.gz", archive.sha256).added == 2
    service.close()
    assert taken() == ALL


def test_another_file_is_refused(archive: ObjectArchive) -> None:
    """Before it is opened: objects go into libraries unseen."""
    with Path(archive.path).open("ab") as file:
        file.write(b"\0")
    error = refused(Diagnostic, take_objects, archive.path, archive.sha256)
    assert (error.code, error.exit_code) == ("digest-mismatch", ExitCode.STORAGE)
    assert taken() == {}


def test_a_missing_file_is_named(archive: ObjectArchive) -> None:
    error = refused(Diagnostic, take_objects, "absent.tar.gz", archive.sha256)
    assert (error.code, error.where) == ("no-such-archive", "absent.tar.gz")


def test_another_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private_cache(tmp_path, monkeypatch)
    (tmp_path / "package" / "lib").mkdir(parents=True)
    (tmp_path / "package" / "lib" / "libonnxruntime.so").write_text("")
    write_archive(tmp_path / "package", package := tmp_path / "package.tar.gz")
    assert refused(Diagnostic, take_objects, str(package), sha256_of(package)).code == "not-objects"
    assert taken() == {}


def test_nothing_compiled_is_nothing_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty archive would look like help."""
    private_cache(tmp_path, monkeypatch)
    error = refused(Diagnostic, write_objects, tmp_path / "objects.tar.gz")
    assert (error.code, error.exit_code) == ("nothing-compiled", ExitCode.USAGE)
    assert not (tmp_path / "objects.tar.gz").exists()
