"""Entries of the cache are what was recorded of them, or are made anew; every kind of change to one is noticed."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from ortrim.base import cache
from ortrim.base.cache import CacheWatch, cached_folder, is_kept, kept_folder, record_entry, watched_cache
from ortrim.base.files import sha256_of
from ortrim.errors import StorageError

NAMES: Final = ("a.so", "headers/b.h", "headers/deep/c.txt", "d.bin", "empty")
Mutation = Callable[[Path, Random], None]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[CacheWatch]:
    """Watch the cache as a command does, not on CI."""
    monkeypatch.delenv("CI", raising=False)
    with watched_cache(lambda _: None) as watch:
        yield watch


def seeded(seed: int) -> Random:
    """Return the same chance in each run."""
    return Random(seed)  # noqa: S311 - damage, no secrets


def fill(folder: Path) -> None:
    """Write an entry: files, folders, a link, a program, and an empty file and folder; the same each time."""
    for number, name in enumerate(NAMES):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(seeded(number).randbytes(0 if name == "empty" else 3000))
    (folder / "a.so").chmod(0o755)
    (folder / "link").symlink_to("a.so")
    (folder / "nothing").mkdir()


def settle(*entries: Path) -> None:
    """Let files be older than a tick of the kernel's clock, so that what `stat` says of them is recorded."""
    time.sleep(0.06)
    assert all(is_kept(entry, large=True) for entry in entries)


def bytes_in(folder: Path) -> dict[str, str]:
    """Return what an entry holds."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink())
        if path.is_symlink()
        else f"{path.stat().st_mode & 0o100} {sha256_of(path)}"
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def some_file(folder: Path, chance: Random) -> Path:
    """Choose a file that holds something."""
    return folder / chance.choice([name for name in NAMES if name != "empty"])


def rewritten(file: Path, content: bytes) -> None:
    """Write a file's content in place, so that nothing but its time of change tells."""
    before = file.stat()
    file.chmod(0o644)
    file.write_bytes(content)
    file.chmod(before.st_mode & 0o777)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def flip(folder: Path, chance: Random) -> None:
    """Change one bit of one byte."""
    file = some_file(folder, chance)
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    rewritten(file, bytes(content))


def truncate(folder: Path, chance: Random) -> None:
    """Cut a file short."""
    file = some_file(folder, chance)
    rewritten(file, file.read_bytes()[: chance.randrange(3000)])


def delete(folder: Path, chance: Random) -> None:
    """Remove a file."""
    (folder / chance.choice(NAMES)).unlink()


def add(folder: Path, chance: Random) -> None:
    """Add a file."""
    (folder / chance.choice(("", "headers", "nothing")) / "added").write_bytes(b"")


def exchange(folder: Path, chance: Random) -> None:
    """Let two files change their names."""
    first, second = chance.sample([name for name in NAMES if name != "empty"], 2)
    (folder / first).rename(folder / "x")
    (folder / second).rename(folder / first)
    (folder / "x").rename(folder / second)


def lead_elsewhere(folder: Path, chance: Random) -> None:
    """Replace a file by a link to one with the same content."""
    file = some_file(folder, chance)
    file.rename(folder.parent / f"moved-{chance.random()}")
    file.symlink_to(next(folder.parent.glob("moved-*")))


def aim_elsewhere(folder: Path, chance: Random) -> None:
    """Let a link lead to another file."""
    (folder / "link").unlink()
    (folder / "link").symlink_to(chance.choice(("d.bin", "/dev/null", "nothing")))


def lose_permission(folder: Path, _: Random) -> None:
    """Let a program be none."""
    (folder / "a.so").chmod(0o444)


def lose_folder(folder: Path, _: Random) -> None:
    """Remove a folder that is empty."""
    (folder / "nothing").rmdir()


def damage_record(folder: Path, chance: Random) -> None:
    """Change a byte of the record itself where it holds digests."""
    record = folder.with_name(f".{folder.name}.record")
    content = bytearray(record.read_bytes())
    content[content.index(b"- ") + 2 + chance.randrange(64)] ^= 1 << chance.randrange(3)
    record.write_bytes(bytes(content))


def lose_record(folder: Path, _: Random) -> None:
    """Remove the record."""
    folder.with_name(f".{folder.name}.record").unlink()


MUTATIONS: Final = (
    *(flip,) * 6, truncate, delete, add, exchange, lead_elsewhere, aim_elsewhere,
    lose_permission, lose_folder, lose_record,
)  # fmt: skip


@pytest.mark.parametrize("large", [False, True])
def test_every_mutation_is_noticed_and_healed(tmp_path: Path, watch: CacheWatch, *, large: bool) -> None:
    """Entries are each damaged in one way, with times kept: not one is used, and all become what they were."""
    watch.sound = None
    chance = seeded(20)
    entries = [tmp_path / str(number) for number in range(len(MUTATIONS))]
    made = [cached_folder(entry, fill, large=large) for entry in entries]
    assert all(made)
    settle(*entries)
    sound = bytes_in(entries[0])
    for entry, mutation in zip(entries, MUTATIONS, strict=True):
        assert not cached_folder(entry, fill, large=large)
        mutation(entry, chance)
        assert cached_folder(entry, fill, large=large), mutation.__name__
        assert bytes_in(entry) == sound
    assert len(watch.damages) == len(MUTATIONS)
    assert [path for path in tmp_path.iterdir() if ".partial-" in path.name] == []


def test_a_damaged_record_costs_its_entry(tmp_path: Path) -> None:
    """What cannot be shown to be sound is made anew."""
    cached_folder(tmp_path / "entry", fill)
    damage_record(tmp_path / "entry", seeded(1))
    assert cached_folder(tmp_path / "entry", fill)


def test_entries_that_were_swapped_are_noticed(tmp_path: Path, watch: CacheWatch) -> None:
    """An entry under another's name, with its record, is not taken for it."""
    for name in ("a", "b"):
        cached_folder(tmp_path / name, fill)
    for name in ("a", ".a.record"):
        (tmp_path / name).rename(tmp_path / "x")
        other = name.replace("a", "b", 1)
        (tmp_path / other).rename(tmp_path / name)
        (tmp_path / "x").rename(tmp_path / other)
    assert [is_kept(tmp_path / name) for name in ("a", "b")] == [False, False]
    assert "under another name" in watch.damages[0]


def forged(entry: Path) -> None:
    """Change a byte and have the record say that `stat` says the same: what a disk that loses bits looks like."""
    file, record = entry / "d.bin", entry.with_name(f".{entry.name}.record")
    rewritten(file, b"?" + file.read_bytes()[1:])
    time.sleep(0.06)
    found, document = file.stat(), json.loads(record.read_bytes())
    state = f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_mode:o}"
    document["files"]["d.bin"][1] = state
    record.write_text(json.dumps(document))


@pytest.mark.parametrize(("verify", "ci", "noticed"), [(False, "", False), (True, "", True), (False, "true", True)])
def test_large_entries_are_read_in_full_when_asked_and_on_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, verify: bool, ci: str, noticed: bool
) -> None:
    """Damage that `stat` does not show is found by reading alone."""
    monkeypatch.setenv("CI", ci)
    entry = tmp_path / "entry"
    cached_folder(entry, fill, large=True)
    forged(entry)
    with watched_cache(lambda _: None, verify=verify):
        assert is_kept(entry, large=True) is not noticed


def test_small_entries_are_always_read_in_full(tmp_path: Path) -> None:
    """What is shipped is hashed, whatever `stat` says."""
    entry = tmp_path / "entry"
    cached_folder(entry, fill)
    forged(entry)
    assert not is_kept(entry)


def test_a_copy_is_read_once_and_then_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cp -a` changes inodes and times of change; what was copied is sound, and recorded as it is now."""
    (tmp_path / "here").mkdir()
    cached_folder(tmp_path / "here" / "entry", fill, large=True)
    settle(tmp_path / "here" / "entry")
    shutil.copytree(tmp_path / "here", tmp_path / "there", symlinks=True)
    settle(tmp_path / "there" / "entry")
    monkeypatch.setattr(cache, "sha256_of", lambda _: pytest.fail("read again"))
    assert is_kept(tmp_path / "there" / "entry", large=True)


def test_large_entries_are_read_only_and_can_be_removed(tmp_path: Path) -> None:
    """No file of them can be written to by mistake; folders can, so that anybody who owns them can remove them."""
    entry = tmp_path / "entry"
    cached_folder(entry, fill, large=True)
    modes = {path.lstat().st_mode & 0o222 for path in entry.rglob("*") if path.is_file() and not path.is_symlink()}
    assert modes == {0}
    assert all(path.stat().st_mode & 0o200 for path in entry.rglob("*") if path.is_dir())


def test_a_command_looks_once_at_a_large_entry(tmp_path: Path, watch: CacheWatch) -> None:
    """The next command looks again."""
    cached_folder(tmp_path / "entry", fill, large=True)
    assert is_kept(tmp_path / "entry", large=True)
    flip(tmp_path / "entry", seeded(1))
    assert is_kept(tmp_path / "entry", large=True)
    with watched_cache(lambda _: None):
        assert not is_kept(tmp_path / "entry", large=True)
    assert watch.damages == []


def test_damage_is_told_with_what_it_is(tmp_path: Path) -> None:
    """The note names the reference, the entry and the file."""
    told: list[str] = []
    entry = tmp_path / "builds" / "0123456789"
    entry.parent.mkdir()
    with watched_cache(told.append):
        cached_folder(entry, fill)
        rewritten(entry / "a.so", b"other")
        cached_folder(entry, fill)
        assert cache.cache_damages() == ("builds/0123456789: a.so has changed; it was removed and is made again",)
    assert told == ["damaged-cache: builds/0123456789: a.so has changed; it was removed and is made again"]


def test_what_cannot_be_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the damage and what stands in the way are reported; nothing damaged is used."""
    entry = tmp_path / "entry"
    cached_folder(entry, fill)
    flip(entry, seeded(1))

    def refuse(_: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(StorageError) as caught:
        cached_folder(entry, fill)
    assert caught.value.code == "damaged-cache"
    assert "has changed" in caught.value.why


def test_a_failed_refill_leaves_nothing(tmp_path: Path) -> None:
    """What could not be made anew is not there, so that the next command tries again."""
    entry = tmp_path / "entry"
    cached_folder(entry, fill)
    flip(entry, seeded(1))

    def fail(_: Path) -> None:
        raise StorageError("no-network", "no network")

    with pytest.raises(StorageError):
        cached_folder(entry, fail)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    assert cached_folder(entry, fill)


def test_a_single_file_is_held_to_its_record(tmp_path: Path) -> None:
    """Files are entries, too."""
    file = tmp_path / "index.json"
    assert not is_kept(file)
    file.write_text("{}")
    record_entry(file)
    assert is_kept(file)
    rewritten(file, b"[]")
    assert not is_kept(file)
    assert not file.exists()


def worked_in(folder: Path, content: str = "object") -> None:
    """Work in a kept folder as a build does, to the end."""
    with kept_folder(folder) as kept:
        (kept.path / "out").mkdir(exist_ok=True)
        (kept.path / "out" / "a.o").write_text(content)
        (kept.path / "out" / ".ninja_log").write_text(content)


def test_a_kept_folder_is_what_the_last_build_left(tmp_path: Path, watch: CacheWatch) -> None:
    """It may change as it will while it is held, and not between."""
    folder = tmp_path / "tree"
    worked_in(folder)
    worked_in(folder, "another object")
    with kept_folder(folder) as kept:
        assert (kept.path / "out" / "a.o").read_text() == "another object"
    rewritten(folder / "out" / "a.o", b"another obj3ct")
    with kept_folder(folder) as kept:
        assert list(kept.path.iterdir()) == []
    assert watch.damages == [f"{tmp_path.name}/tree: out/a.o has changed; it was removed and is made again"]


@pytest.mark.parametrize("mutation", [flip, truncate, delete, add, exchange, aim_elsewhere, lose_record])
def test_a_kept_folder_that_was_damaged_is_emptied(tmp_path: Path, mutation: Mutation) -> None:
    """Whatever was done to it between two builds."""
    folder = tmp_path / "tree"
    with kept_folder(folder) as kept:
        fill(kept.path)
    mutation(folder, seeded(3))
    with kept_folder(folder) as kept:
        assert list(kept.path.iterdir()) == []


def test_a_kept_folder_from_elsewhere_is_begun_anew_without_a_note(tmp_path: Path, watch: CacheWatch) -> None:
    """A cache that was moved or copied is not damaged."""
    (tmp_path / "here").mkdir()
    worked_in(tmp_path / "here" / "tree")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    with kept_folder(tmp_path / "there" / "tree") as kept:
        assert list(kept.path.iterdir()) == []
    with kept_folder(tmp_path / "here" / "tree") as kept:
        assert (kept.path / "out" / "a.o").is_file()
    assert watch.damages == []


def killed_in(folder: Path, change: Callable[[Path], Any]) -> None:
    """Work in a kept folder and end without a word, as after SIGKILL."""
    holder = kept_folder(folder)
    kept = holder.__enter__()
    fill(kept.path)
    (kept.path / ".ninja_log").write_text("# 1")
    kept.record(ended=False)
    change(kept.path)
    os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_kill_what_was_not_recorded_goes(tmp_path: Path, watch: CacheWatch) -> None:
    """What a checkpoint recorded stays, and what ninja itself writes; half an object, or a damaged one, does not."""

    def change(path: Path) -> None:
        (path / "half.o").write_bytes(b"half")
        rewritten(path / "d.bin", b"damaged")
        (path / ".ninja_log").write_text("# 2")

    folder = tmp_path / "tree"
    child = os.fork()
    if child == 0:
        killed_in(folder, change)
    os.waitpid(child, 0)
    with kept_folder(folder) as kept:
        assert (kept.path / "a.so").is_file()
        assert not (kept.path / "half.o").exists()
        assert not (kept.path / "d.bin").exists()
        assert (kept.path / ".ninja_log").read_text() == "# 2"
    assert watch.damages == []


def test_a_build_that_fails_keeps_what_it_made(tmp_path: Path, watch: CacheWatch) -> None:
    """So does one that Ctrl-C ends."""
    folder = tmp_path / "tree"

    def interrupt() -> None:
        with kept_folder(folder) as kept:
            (kept.path / "a.o").write_text("object")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    with kept_folder(folder) as kept:
        assert (kept.path / "a.o").read_text() == "object"
    assert watch.damages == []


def test_checkpoints_come_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are many; most of them cost nothing."""
    with kept_folder(tmp_path / "tree") as kept:
        written: list[bool] = []
        monkeypatch.setattr(kept, "record", lambda *, ended: written.append(ended))
        monkeypatch.setattr(cache, "CHECKPOINT_SHARE", 0.0)
        kept.checkpoint()
        assert written == []
        monkeypatch.setattr(cache, "CHECKPOINT_SHARE", 1e9)
        kept.checkpoint()
        assert written == [False]
