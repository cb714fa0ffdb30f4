"""Folders of the cache in which somebody else works: what vanishes between two looks is not there, and that is all."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from busy_folders import compiling
from ortrim.base import cache
from ortrim.base.cache import CacheWatch, is_kept, kept_folder, record_entry, remove_entry, watched_cache
from ortrim.base.files import sha256_of

KINDS: Final = {
    "file": "tmp/file",
    "link": "tmp/link",
    "folder": "tmp/folder",
    "empty folder": "tmp/empty",
    "all": "tmp",
}


@pytest.fixture
def watch() -> Iterator[CacheWatch]:
    """Watch the cache as a command does."""
    with watched_cache(lambda _: None) as watch:
        yield watch


def fill(folder: Path) -> None:
    """Write what stays, and one of each kind that will vanish."""
    (folder / "object.o").write_text("compiled")
    (folder / "tmp/folder/deep").mkdir(parents=True)
    (folder / "tmp/empty").mkdir()
    (folder / "tmp/file").write_text("file")
    (folder / "tmp/link").symlink_to("file")
    (folder / "tmp/folder/deep/file").write_text("deep")


def remove(path: Path) -> None:
    """Remove whatever it is."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def vanishing(victim: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove something as soon as its folder was listed."""
    real = os.scandir

    @contextmanager
    def scandir(folder: str) -> Iterator[Any]:
        with real(folder) as listing:
            entries = list(listing)
        if Path(folder) == victim.parent:
            patch.undo()
            remove(victim)
        yield iter(entries)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        yield


@pytest.mark.parametrize("name", KINDS.values(), ids=KINDS)
def test_what_vanishes_while_a_folder_is_recorded_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: CacheWatch, name: str
) -> None:
    """A build goes on, and the next one finds the folder as it was left."""
    folder = tmp_path / "tree"
    with kept_folder(folder) as kept:
        fill(folder)
        with vanishing(folder / name, monkeypatch):
            kept.record(ended=False)
        kept.record(ended=True)
    with kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


@pytest.mark.parametrize("name", KINDS.values(), ids=KINDS)
def test_what_vanishes_at_the_last_look_is_no_damage_to_the_next_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: CacheWatch, name: str
) -> None:
    """A compiler that outlived its build removes its temporary files when it ends."""
    folder = tmp_path / "tree"
    with vanishing(folder / name, monkeypatch), kept_folder(folder):
        fill(folder)
    with kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


@pytest.mark.parametrize("name", ["file", "link"])
def test_what_vanishes_before_it_is_read_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: CacheWatch, name: str
) -> None:
    """Its status was still to be had."""
    folder, victim = tmp_path / "tree", tmp_path / "tree/tmp" / name

    def after_it(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def late(path: Path) -> Any:
            if path == victim:
                path.unlink()
            return read(path)

        return late

    with kept_folder(folder):
        fill(folder)
        monkeypatch.setattr(cache, "sha256_of", after_it(sha256_of))
        monkeypatch.setattr(Path, "readlink", after_it(Path.readlink))
    assert not os.path.lexists(victim)
    with kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


def test_a_folder_is_recorded_while_compilers_work_in_it(tmp_path: Path, watch: CacheWatch) -> None:
    """At each step of a build others still compile: thousands of looks, and no error."""
    folder = tmp_path / "tree"
    with kept_folder(folder) as kept:
        fill(folder)
        with compiling(folder / "out/zig/tmp") as compiler:
            ends = time.monotonic() + 0.5
            while time.monotonic() < ends:
                kept.record(ended=False)
            assert compiler.poll() is None
        shutil.rmtree(folder / "out")
    with kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


@pytest.mark.parametrize("form", ["folder", "file"])
def test_an_entry_that_another_process_removes_meanwhile_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: CacheWatch, form: str
) -> None:
    """Two builds find the same damage at once; one of them removes it before the other has looked."""
    entry = tmp_path / "entry"
    if form == "folder":
        entry.mkdir()
        fill(entry)
    else:
        entry.write_text("file")
    record_entry(entry)
    real: Callable[[str], bool] = os.path.lexists
    looks: list[str] = []

    def lexists(path: str) -> bool:
        was = real(path)
        if not looks:
            remove_entry_but_record(entry)
        looks.append(path)
        return was

    monkeypatch.setattr(os.path, "lexists", lexists)
    assert not is_kept(entry)
    assert watch.damages == []


def remove_entry_but_record(entry: Path) -> None:
    """Remove an entry in the middle of a look at it, of which the record was read already."""
    record = entry.with_name(f".{entry.name}.record")
    content = record.read_bytes()
    remove_entry(entry)
    record.write_bytes(content)
