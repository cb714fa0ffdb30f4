"""Entries of the cache are what was recorded of them, or are made anew; every kind of change to one is noticed."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from busy_folders import compiling
from ortrim.base import cache
from ortrim.base.files import sha256_of
from ortrim.errors import StorageError
from ortrim.pins.shipped import pin_text
from refusing import refused

NAMES: Final = ("a.so", "headers/b.h", "headers/deep/c.txt", "d.bin", "empty")
Mutation = Callable[[Path, Random], None]
Lock = Callable[[Path], AbstractContextManager[object]]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[cache.CacheWatch]:
    monkeypatch.delenv("CI", raising=False)
    with cache.watched_cache(lambda _: None) as watch:
        yield watch


def seeded(seed: int) -> Random:
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
    assert all(cache.is_kept(entry, large=True) for entry in entries)


def bytes_in(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): str(path.readlink())
        if path.is_symlink()
        else f"{path.stat().st_mode & 0o100} {sha256_of(path)}"
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def some_file(folder: Path, chance: Random) -> Path:
    return folder / chance.choice([name for name in NAMES if name != "empty"])


def rewritten(file: Path, content: bytes) -> None:
    """Write a file's content in place, so that nothing but its time of change tells."""
    before = file.stat()
    file.chmod(0o644)
    file.write_bytes(content)
    file.chmod(before.st_mode & 0o777)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def flip(folder: Path, chance: Random) -> None:
    file = some_file(folder, chance)
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    rewritten(file, bytes(content))


def truncate(folder: Path, chance: Random) -> None:
    file = some_file(folder, chance)
    rewritten(file, file.read_bytes()[: chance.randrange(3000)])


def delete(folder: Path, chance: Random) -> None:
    (folder / chance.choice(NAMES)).unlink()


def add(folder: Path, chance: Random) -> None:
    (folder / chance.choice(("", "headers", "nothing")) / "added").write_bytes(b"")


def exchange(folder: Path, chance: Random) -> None:
    first, second = chance.sample([name for name in NAMES if name != "empty"], 2)
    (folder / first).rename(folder / "x")
    (folder / second).rename(folder / first)
    (folder / "x").rename(folder / second)


def lead_elsewhere(folder: Path, chance: Random) -> None:
    file = some_file(folder, chance)
    file.rename(folder.parent / f"moved-{chance.random()}")
    file.symlink_to(next(folder.parent.glob("moved-*")))


def aim_elsewhere(folder: Path, chance: Random) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to(chance.choice(("d.bin", "/dev/null", "nothing")))


def lose_permission(folder: Path, _: Random) -> None:
    (folder / "a.so").chmod(0o444)


def lose_folder(folder: Path, _: Random) -> None:
    (folder / "nothing").rmdir()


def damage_record(folder: Path, chance: Random) -> None:
    record = folder.with_name(f".{folder.name}.record")
    content = bytearray(record.read_bytes())
    content[content.index(b"- ") + 2 + chance.randrange(64)] ^= 1 << chance.randrange(3)
    record.write_bytes(bytes(content))


def lose_record(folder: Path, _: Random) -> None:
    folder.with_name(f".{folder.name}.record").unlink()


MUTATIONS: Final = (
    *(flip,) * 6, truncate, delete, add, exchange, lead_elsewhere, aim_elsewhere,
    lose_permission, lose_folder, lose_record,
)  # fmt: skip


@pytest.mark.parametrize("large", [False, True])
def test_every_mutation_is_noticed_and_healed(tmp_path: Path, watch: cache.CacheWatch, *, large: bool) -> None:
    """Entries are each damaged in one way, with times kept: not one is used, and all become what they were."""
    watch.sound = None
    chance = seeded(20)
    entries = [tmp_path / str(number) for number in range(len(MUTATIONS))]
    made = [cache.cached_folder(entry, fill, large=large) for entry in entries]
    assert all(made)
    settle(*entries)
    sound = bytes_in(entries[0])
    for entry, mutation in zip(entries, MUTATIONS, strict=True):
        assert not cache.cached_folder(entry, fill, large=large)
        mutation(entry, chance)
        assert cache.cached_folder(entry, fill, large=large), mutation.__name__
        assert bytes_in(entry) == sound
    assert len(watch.damages) == len(MUTATIONS)
    assert [path for path in tmp_path.iterdir() if ".partial-" in path.name] == []


def test_a_damaged_record_costs_its_entry(tmp_path: Path) -> None:
    """What cannot be shown to be sound is made anew."""
    cache.cached_folder(tmp_path / "entry", fill)
    damage_record(tmp_path / "entry", seeded(1))
    assert cache.cached_folder(tmp_path / "entry", fill)


def test_entries_that_were_swapped_are_noticed(tmp_path: Path, watch: cache.CacheWatch) -> None:
    """An entry under another's name, with its record, is not taken for it."""
    for name in ("a", "b"):
        cache.cached_folder(tmp_path / name, fill)
    for name in ("a", ".a.record"):
        (tmp_path / name).rename(tmp_path / "x")
        other = name.replace("a", "b", 1)
        (tmp_path / other).rename(tmp_path / name)
        (tmp_path / "x").rename(tmp_path / other)
    assert [cache.is_kept(tmp_path / name) for name in ("a", "b")] == [False, False]
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


@pytest.mark.parametrize(
    ("large", "verify", "ci", "noticed"),
    [(True, False, "", False), (True, True, "", True), (True, False, "true", True), (False, False, "", True)],
)
def test_small_entries_are_read_in_full_and_large_ones_when_asked_and_on_ci(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool, verify: bool, ci: str, noticed: bool
) -> None:
    """Damage that `stat` does not show is found by reading alone; what is shipped is small."""
    monkeypatch.setenv("CI", ci)
    entry = tmp_path / "entry"
    cache.cached_folder(entry, fill, large=large)
    forged(entry)
    with cache.watched_cache(lambda _: None, verify=verify):
        assert cache.is_kept(entry, large=large) is not noticed


def test_a_copy_is_read_once_and_then_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cp -a` changes inodes and times of change; what was copied is sound, and recorded as it is now."""
    (tmp_path / "here").mkdir()
    cache.cached_folder(tmp_path / "here" / "entry", fill, large=True)
    settle(tmp_path / "here" / "entry")
    shutil.copytree(tmp_path / "here", tmp_path / "there", symlinks=True)
    settle(tmp_path / "there" / "entry")
    monkeypatch.setattr(cache, "sha256_of", lambda _: pytest.fail("read again"))
    assert cache.is_kept(tmp_path / "there" / "entry", large=True)


def test_large_entries_are_read_only_and_can_be_removed(tmp_path: Path) -> None:
    """No file of them can be written to by mistake; folders can, so that anybody who owns them can remove them."""
    entry = tmp_path / "entry"
    cache.cached_folder(entry, fill, large=True)
    modes = {path.lstat().st_mode & 0o222 for path in entry.rglob("*") if path.is_file() and not path.is_symlink()}
    assert modes == {0}
    assert all(path.stat().st_mode & 0o200 for path in entry.rglob("*") if path.is_dir())


def test_a_command_looks_once_at_a_large_entry(tmp_path: Path, watch: cache.CacheWatch) -> None:
    cache.cached_folder(tmp_path / "entry", fill, large=True)
    assert cache.is_kept(tmp_path / "entry", large=True)
    flip(tmp_path / "entry", seeded(1))
    assert cache.is_kept(tmp_path / "entry", large=True)
    with cache.watched_cache(lambda _: None):
        assert not cache.is_kept(tmp_path / "entry", large=True)
    assert watch.damages == []


def test_damage_is_told_with_what_it_is(tmp_path: Path) -> None:
    told: list[str] = []
    entry = tmp_path / "builds" / "0123456789"
    entry.parent.mkdir()
    with cache.watched_cache(told.append):
        cache.cached_folder(entry, fill)
        rewritten(entry / "a.so", b"other")
        cache.cached_folder(entry, fill)
        assert cache.cache_damages() == ("builds/0123456789: a.so has changed; it was removed and is made again",)
    assert told == ["damaged-cache: builds/0123456789: a.so has changed; it was removed and is made again"]


def test_what_cannot_be_removed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = tmp_path / "entry"
    cache.cached_folder(entry, fill)
    flip(entry, seeded(1))

    def refuse(_: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied", str(target))

    monkeypatch.setattr(Path, "rename", refuse)
    caught = refused(StorageError, cache.cached_folder, entry, fill)
    assert caught.code == "damaged-cache"
    assert "has changed" in caught.why


def test_a_failed_refill_leaves_nothing(tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    cache.cached_folder(entry, fill)
    flip(entry, seeded(1))

    def fail(_: Path) -> None:
        raise StorageError("no-network", "no network")

    refused(StorageError, cache.cached_folder, entry, fail)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    assert cache.cached_folder(entry, fill)


def test_a_single_file_is_held_to_its_record(tmp_path: Path) -> None:
    file = tmp_path / "index.json"
    assert not cache.is_kept(file)
    file.write_text("{}")
    cache.record_entry(file)
    assert cache.is_kept(file)
    rewritten(file, b"[]")
    assert not cache.is_kept(file)
    assert not file.exists()


def worked_in(folder: Path, content: str = "object") -> None:
    with cache.kept_folder(folder) as kept:
        (kept.path / "out").mkdir(exist_ok=True)
        (kept.path / "out" / "a.o").write_text(content)
        (kept.path / "out" / ".ninja_log").write_text(content)


def test_a_kept_folder_is_what_the_last_build_left(tmp_path: Path, watch: cache.CacheWatch) -> None:
    folder = tmp_path / "tree"
    worked_in(folder)
    worked_in(folder, "another object")
    with cache.kept_folder(folder) as kept:
        assert (kept.path / "out" / "a.o").read_text() == "another object"
    rewritten(folder / "out" / "a.o", b"another obj3ct")
    with cache.kept_folder(folder) as kept:
        assert list(kept.path.iterdir()) == []
    assert watch.damages == [f"{tmp_path.name}/tree: out/a.o has changed; it was removed and is made again"]


@pytest.mark.parametrize("mutation", [flip, truncate, delete, add, exchange, aim_elsewhere, lose_record])
def test_a_kept_folder_that_was_damaged_is_emptied(tmp_path: Path, mutation: Mutation) -> None:
    """Whatever was done to it between two builds."""
    folder = tmp_path / "tree"
    with cache.kept_folder(folder) as kept:
        fill(kept.path)
    mutation(folder, seeded(3))
    with cache.kept_folder(folder) as kept:
        assert list(kept.path.iterdir()) == []


def test_a_kept_folder_from_elsewhere_is_begun_anew_without_a_note(tmp_path: Path, watch: cache.CacheWatch) -> None:
    (tmp_path / "here").mkdir()
    worked_in(tmp_path / "here" / "tree")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    with cache.kept_folder(tmp_path / "there" / "tree") as kept:
        assert list(kept.path.iterdir()) == []
    with cache.kept_folder(tmp_path / "here" / "tree") as kept:
        assert (kept.path / "out" / "a.o").is_file()
    assert watch.damages == []


def killed_in(folder: Path, change: Callable[[Path], Any]) -> None:
    holder = cache.kept_folder(folder)
    kept = holder.__enter__()
    fill(kept.path)
    (kept.path / ".ninja_log").write_text("# 1")
    kept.record(ended=False)
    change(kept.path)
    os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_kill_what_was_not_recorded_goes(tmp_path: Path, watch: cache.CacheWatch) -> None:
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
    with cache.kept_folder(folder) as kept:
        assert (kept.path / "a.so").is_file()
        assert not (kept.path / "half.o").exists()
        assert not (kept.path / "d.bin").exists()
        assert (kept.path / ".ninja_log").read_text() == "# 2"
    assert watch.damages == []


def test_a_build_that_fails_keeps_what_it_made(tmp_path: Path, watch: cache.CacheWatch) -> None:
    folder = tmp_path / "tree"

    def interrupt() -> None:
        with cache.kept_folder(folder) as kept:
            (kept.path / "a.o").write_text("object")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    with cache.kept_folder(folder) as kept:
        assert (kept.path / "a.o").read_text() == "object"
    assert watch.damages == []


def test_checkpoints_come_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are many; most of them cost nothing."""
    with cache.kept_folder(tmp_path / "tree") as kept:
        written: list[bool] = []
        monkeypatch.setattr(kept, "record", lambda *, ended: written.append(ended))
        monkeypatch.setattr(cache, "CHECKPOINT_SHARE", 0.0)
        kept.checkpoint()
        assert written == []
        monkeypatch.setattr(cache, "CHECKPOINT_SHARE", 1e9)
        kept.checkpoint()
        assert written == [False]


def test_cache_lies_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "c"))
    assert cache.cache_folder("tools") == tmp_path / "c/tools"
    assert (tmp_path / "c/tools").is_dir()


def test_relative_cache_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORTRIM_CACHE", "here")
    assert cache.cache_folder("tools") == tmp_path / "here/tools"


def test_default_is_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTRIM_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_folder("tools") == tmp_path / "ortrim/tools"


def test_file_in_place_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c").write_text("")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "c"))
    assert refused(StorageError, cache.cache_folder, "tools").code == "path-in-the-way"


def test_links_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache reached through a symbolic link has its real path: the one that compilers will see."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "disk")
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "c"))
    assert cache.cache_folder("tools") == tmp_path / "disk/tools"


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user that is only a number, as in many containers: neither HOME nor an entry in the list of users."""
    monkeypatch.delenv("HOME", raising=False)
    for name in [name for name in os.environ if name.startswith("XDG_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)


@pytest.mark.usefixtures("homeless")
@pytest.mark.parametrize("chosen", ["", "~/cache", "~nobody-of-this-name/cache"])
def test_without_a_home_folder_a_cache_has_to_be_named(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The diagnostic says by what; nothing is made in a folder called `~`."""
    monkeypatch.setenv("ORTRIM_CACHE", chosen)
    caught = refused(StorageError, cache.cache_folder, "sources")
    assert caught.code == "no-home"
    assert "ORTRIM_CACHE" in caught.hint


@pytest.mark.usefixtures("homeless")
def test_without_a_home_folder_there_are_the_pins_of_ortrim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTRIM_PINS", raising=False)
    assert pin_text("actions.toml")
    monkeypatch.setenv("ORTRIM_PINS", "~/pins")
    with pytest.raises(StorageError, match="no home folder"):
        pin_text("actions.toml")


SPAWN: Final = get_context("spawn")


def fill_folders(folder: Path) -> None:
    (folder / "file").write_text("whole")


def fill_slowly(folder: Path) -> None:
    with (folder.parent / "marks").open("a") as marks:
        marks.write("x")
    time.sleep(0.3)
    fill_folders(folder)


def publish_slowly(destination: Path) -> None:
    cache.publish_folder(destination, fill_slowly)


def publish_and_hang(destination: Path, started: Event) -> None:
    def half(folder: Path) -> None:
        (folder / "half").write_text("")
        started.set()
        time.sleep(60)

    cache.publish_folder(destination, half)


def hold(path: Path, held: Event, enough: Event) -> None:
    with cache.locked(path):
        held.set()
        enough.wait(60)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_folder_is_made_once(tmp_path: Path) -> None:
    assert cache.publish_folder(tmp_path / "d", fill_folders)
    assert not cache.publish_folder(tmp_path / "d", lambda _: pytest.fail("asked again"))
    assert (tmp_path / "d/file").read_text() == "whole"
    assert (tmp_path / "d").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:

    def failing(folder: Path) -> None:
        fill_folders(folder)
        raise error

    with pytest.raises(error):
        cache.publish_folder(tmp_path / "d", failing)
    assert names(tmp_path) == []
    assert cache.publish_folder(tmp_path / "d", fill_folders)


def test_two_processes_make_it_once(tmp_path: Path) -> None:
    children = [SPAWN.Process(target=publish_slowly, args=(tmp_path / "d",)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    assert (tmp_path / "marks").read_text() == "x"
    assert names(tmp_path) == ["d", "marks"]


def test_killed_process_leaves_no_folder_and_no_lock(tmp_path: Path) -> None:
    started = SPAWN.Event()
    child = SPAWN.Process(target=publish_and_hang, args=(tmp_path / "d", started))
    child.start()
    assert started.wait(30)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join(30)
    assert not (tmp_path / "d").exists()
    assert len(names(tmp_path)) == 1
    assert cache.publish_folder(tmp_path / "d", fill_folders)
    assert names(tmp_path) == ["d"]


def test_leftovers_of_odd_names_are_found(tmp_path: Path) -> None:
    """Characters that mean something in a pattern are taken literally, and other folders are left alone."""
    (tmp_path / ".a[b].partial-1").mkdir()
    (tmp_path / ".ab.partial-1").mkdir()
    cache.publish_folder(tmp_path / "a[b]", fill_folders)
    assert names(tmp_path) == [".ab.partial-1", "a[b]"]


def test_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "d").write_text("mine")
    assert refused(StorageError, cache.publish_folder, tmp_path / "d", fill_folders).code == "path-in-the-way"
    assert names(tmp_path) == ["d"]


@pytest.mark.parametrize("lock", [cache.locked, cache.locked_if_free])
def test_error_of_the_body_is_passed_on_as_it_is(tmp_path: Path, lock: Lock) -> None:
    """What happens while a lock is held is not taken for trouble with the lock, and the lock is freed."""
    with pytest.raises(FileNotFoundError), lock(tmp_path / "x"):
        (tmp_path / "absent").read_text()
    with cache.locked_if_free(tmp_path / "x") as free:
        assert free


def test_who_waits_for_a_lock_is_told_once(tmp_path: Path) -> None:
    said = []
    with ExitStack() as other:
        other.enter_context(cache.locked(tmp_path / "x", lambda: said.append("at once")))

        def on_wait() -> None:
            said.append("waits")
            other.close()

        with cache.locked(tmp_path / "x", on_wait):
            said.append("holds")
    assert said == ["waits", "holds"]


def test_who_waits_for_a_folder_is_told(tmp_path: Path) -> None:
    """The folder that the other one makes meanwhile is taken; there is none to fill."""
    said = []
    with ExitStack() as other:
        other.enter_context(cache.locked(tmp_path / "d"))

        def on_wait() -> None:
            said.append("waits")
            (tmp_path / "d").mkdir()
            other.close()

        with cache.published(tmp_path / "d", on_wait) as temporary:
            assert temporary is None
    assert said == ["waits"]


def test_a_free_lock_is_taken_and_freed(tmp_path: Path) -> None:
    """While it is held nobody else gets it, afterwards anyone does; the folder for it is made."""
    path = tmp_path / "deep" / "x"
    for _ in range(2):
        with cache.locked_if_free(path) as free, cache.locked_if_free(path) as second:
            assert (free, second) == (True, False)
    with cache.locked(path, lambda: pytest.fail("still held")):
        pass


def test_a_lock_that_is_held_is_not_waited_for(tmp_path: Path) -> None:
    held, enough = SPAWN.Event(), SPAWN.Event()
    child = SPAWN.Process(target=hold, args=(tmp_path / "x", held, enough))
    child.start()
    assert held.wait(30)
    for _ in range(2):
        with cache.locked_if_free(tmp_path / "x") as free:
            assert not free
    enough.set()
    child.join(30)
    assert child.exitcode == 0
    with cache.locked_if_free(tmp_path / "x") as free:
        assert free


@pytest.mark.parametrize("lock", [cache.locked, cache.locked_if_free])
def test_a_lock_that_cannot_be_made_is_a_diagnostic(tmp_path: Path, lock: Lock) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(StorageError) as caught, lock(tmp_path / "f" / "lock"):
        pass
    assert caught.value.code == "path-in-the-way"


KINDS: Final = {
    "file": "tmp/file",
    "link": "tmp/link",
    "folder": "tmp/folder",
    "empty folder": "tmp/empty",
    "all": "tmp",
}


def fill_changing_folders(folder: Path) -> None:
    (folder / "object.o").write_text("compiled")
    (folder / "tmp/folder/deep").mkdir(parents=True)
    (folder / "tmp/empty").mkdir()
    (folder / "tmp/file").write_text("file")
    (folder / "tmp/link").symlink_to("file")
    (folder / "tmp/folder/deep/file").write_text("deep")


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def vanishing(victim: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: cache.CacheWatch, name: str
) -> None:
    """A build goes on, and the next one finds the folder as it was left."""
    folder = tmp_path / "tree"
    with cache.kept_folder(folder) as kept:
        fill_changing_folders(folder)
        with vanishing(folder / name, monkeypatch):
            kept.record(ended=False)
        kept.record(ended=True)
    with cache.kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


@pytest.mark.parametrize("name", KINDS.values(), ids=KINDS)
def test_what_vanishes_at_the_last_look_is_no_damage_to_the_next_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: cache.CacheWatch, name: str
) -> None:
    """A compiler that outlived its build removes its temporary files when it ends."""
    folder = tmp_path / "tree"
    with vanishing(folder / name, monkeypatch), cache.kept_folder(folder):
        fill_changing_folders(folder)
    with cache.kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


@pytest.mark.parametrize("name", ["file", "link"])
def test_what_vanishes_before_it_is_read_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: cache.CacheWatch, name: str
) -> None:
    folder, victim = tmp_path / "tree", tmp_path / "tree/tmp" / name

    def after_it(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
        def late(path: Path) -> Any:
            if path == victim:
                path.unlink()
            return read(path)

        return late

    with cache.kept_folder(folder):
        fill_changing_folders(folder)
        monkeypatch.setattr(cache, "sha256_of", after_it(sha256_of))
        monkeypatch.setattr(Path, "readlink", after_it(Path.readlink))
    assert not os.path.lexists(victim)
    with cache.kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


def test_a_folder_is_recorded_while_compilers_work_in_it(tmp_path: Path, watch: cache.CacheWatch) -> None:
    """At each step of a build others still compile: thousands of looks, and no error."""
    folder = tmp_path / "tree"
    with cache.kept_folder(folder) as kept:
        fill_changing_folders(folder)
        with compiling(folder / "out/zig/tmp") as compiler:
            ends = time.monotonic() + 0.5
            while time.monotonic() < ends:
                kept.record(ended=False)
            assert compiler.poll() is None
        shutil.rmtree(folder / "out")
    with cache.kept_folder(folder):
        assert (folder / "object.o").read_text() == "compiled"
    assert watch.damages == []


@pytest.mark.parametrize("form", ["folder", "file"])
def test_an_entry_that_another_process_removes_meanwhile_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: cache.CacheWatch, form: str
) -> None:
    """Two builds find the same damage at once; one of them removes it before the other has looked."""
    entry = tmp_path / "entry"
    if form == "folder":
        entry.mkdir()
        fill_changing_folders(entry)
    else:
        entry.write_text("file")
    cache.record_entry(entry)
    real: Callable[[str], bool] = os.path.lexists
    looks: list[str] = []

    def lexists(path: str) -> bool:
        was = real(path)
        if not looks:
            remove_entry_but_record(entry)
        looks.append(path)
        return was

    monkeypatch.setattr(os.path, "lexists", lexists)
    assert not cache.is_kept(entry)
    assert watch.damages == []


def remove_entry_but_record(entry: Path) -> None:
    record = entry.with_name(f".{entry.name}.record")
    content = record.read_bytes()
    cache.remove_entry(entry)
    record.write_bytes(content)
