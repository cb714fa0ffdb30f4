"""The cache: folders that exist only when complete, are made once, and are compared with a record of what they were."""

import glob
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from ortrim.base.files import chosen_folder, sha256_of, storage_errors, temporary_beside, write_atomically
from ortrim.errors import StorageError


def cache_folder(kind: str) -> Path:
    """Return the cache folder for one kind of thing (`sources`, `tools`, ...), absolute, created when absent.

    Symbolic links in it are followed, as upstream's `build.py` does: paths that are kept out of objects and of compiler
    cache keys have to be those that the compiler sees.
    """
    folder = chosen_folder("ORTRIM_CACHE", user_cache_path) / kind
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return folder.resolve()


@contextmanager
def locked(path: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock named after `path`; the operating system frees it if the process dies. Not reentrant.

    `on_wait` is called once when another process holds it. The lock's file stays: removing it would let two processes
    hold a lock of the same name.
    """
    with storage_errors(path.parent):
        lock = _lock(path)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            on_wait()
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def locked_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock of `path` unless another process does; yields whether it is held."""
    with storage_errors(path.parent):
        lock = _lock(path)
        with suppress(Timeout):
            lock.acquire(blocking=False)
    try:
        yield lock.is_locked
    finally:
        lock.release()


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_name(f".{path.name}.lock"))


def publish_folder(destination: Path, fill: Callable[[Path], None]) -> bool:
    """Make `destination` with what `fill` writes, as `published` does; return whether it was made."""
    with published(destination) as temporary:
        if temporary:
            fill(temporary)
    return temporary is not None


@contextmanager
def published(destination: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[Path | None]:
    """Yield a temporary sibling of `destination`, renamed into place in the end; None when that is already there.

    Of two concurrent processes, one makes it, and `on_wait` is called in the other. Nothing is left of what failed;
    what a killed process left is removed by the next one.
    """
    if destination.is_dir():
        yield None
        return
    with locked(destination, on_wait):
        if destination.is_dir():
            yield None
            return
        remove_leftovers(destination)
        with temporary_beside(destination, f".{destination.name}.partial-") as temporary:
            with storage_errors(destination):
                temporary.mkdir()
                temporary.chmod(0o755)
            yield temporary
            with storage_errors(destination):
                temporary.rename(destination)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left of `path`; the caller holds its lock, so nobody else writes them."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.partial-*"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


FORM: Final = 1
CLOCK_TICK_NS: Final = 50_000_000
"""A file that was changed so shortly before may be changed again at the same time by the kernel's clock, unnoticed."""
CHECKPOINT_SHARE: Final = 0.05  # the share of its time that a build spends at most on recording what it has made so far
NINJAS_OWN: Final = frozenset({".ninja_log", ".ninja_deps"})
"""What ninja appends to at each step; without them it compiles everything again."""


class Seen(NamedTuple):
    """A file: `content` is its SHA-256 and whether it may be run, or a link's aim; `state` is what `stat` says."""

    content: str
    state: str


SeenFiles = dict[str, Seen]
_FOLDER: Final = Seen("folder", "")


@dataclass(frozen=True, kw_only=True)
class _Record:
    """What was written of an entry; `ended` is False while a folder that is kept is worked in."""

    place: str
    ended: bool
    files: SeenFiles


@dataclass(kw_only=True)
class CacheWatch:
    """How one command uses its cache, and what it found; large entries in `sound` need not be looked at again."""

    on_damage: Callable[[str], None] = lambda _: None
    verify: bool = False
    damages: list[str] = field(default_factory=list)
    sound: set[Path] | None = None


_WATCHES: Final = [CacheWatch()]  # the last is in force. Threads share it, unlike a `ContextVar`.


@contextmanager
def watched_cache(on_damage: Callable[[str], None], *, verify: bool = False) -> Iterator[CacheWatch]:
    """Report damaged entries to `on_damage`; `verify`, and `CI=true`, hash all that is read, large entries once."""
    verify = verify or os.environ.get("CI") == "true"
    _WATCHES.append(CacheWatch(on_damage=on_damage, verify=verify, sound=set()))
    try:
        yield _WATCHES[-1]
    finally:
        _WATCHES.pop()


def cache_damages() -> tuple[str, ...]:
    """Return what was found damaged since the command began."""
    return tuple(_WATCHES[-1].damages)


def is_verifying() -> bool:
    """Whether all that is read from the cache is hashed."""
    return _WATCHES[-1].verify


def cached_folder(destination: Path, fill: Callable[[Path], None], *, large: bool = False) -> bool:
    """Make a folder of the cache with what `fill` writes, as `cached` does; return whether it was made."""
    with cached(destination, large=large) as temporary:
        if temporary:
            fill(temporary)
    return temporary is not None


@contextmanager
def cached(
    destination: Path, on_wait: Callable[[], None] = lambda: None, *, large: bool = False
) -> Iterator[Path | None]:
    """Yield a folder to be filled as `published` does, and record it; None when it is there and what it was.

    Files of a `large` folder are made read-only.
    """
    if destination.is_dir() and is_kept(destination, large=large):
        yield None
        return
    with published(destination, on_wait) as temporary:
        yield temporary
        if temporary:
            if large:
                _make_read_only(temporary)
            files = _seen_in(temporary, {}, hashed=True)
            _write(destination, _Record(place=destination.name, ended=True, files=files))


def record_entry(entry: Path) -> None:
    """Record a file or folder of the cache as it is now."""
    _write(entry, _Record(place=entry.name, ended=True, files=_seen_in(entry, {}, hashed=True)))


def is_kept(entry: Path, *, large: bool = False) -> bool:
    """Whether a file or folder of the cache is there and what was recorded; if it is not, it is removed with a note."""
    if not os.path.lexists(entry):
        return False
    sound = _WATCHES[-1].sound
    if large and sound is not None and entry in sound:
        return True
    if damage_of(entry, large=large):
        with locked(entry):  # Another process may have made it anew meanwhile.
            if not os.path.lexists(entry):
                return False
            if why := damage_of(entry, large=large):
                discard(entry, why)
                return False
    if large and sound is not None:
        sound.add(entry)
    return True


def damage_of(entry: Path, *, large: bool = False) -> str:
    """Return why an entry is not what was recorded, or nothing; what `stat` says now is recorded if that is all."""
    known = _read(entry)
    if known is None or known.place not in {entry.name, str(entry)}:
        return "it has no record, or a damaged one" if known is None else f"it is {known.place} under another name"
    now = _seen_in(entry, known.files, hashed=not large or is_verifying())
    if why := _difference(known.files, now):
        return why
    if now != known.files:
        with suppress(StorageError):  # A cache that cannot be written to is read in full each time.
            _write(entry, _Record(place=known.place, ended=known.ended, files=now))
    return ""


def discard(entry: Path, why: str) -> None:
    """Remove a damaged entry of the cache and report it."""
    try:
        remove_entry(entry)
    except StorageError as error:
        hint = f"remove it, then run the same command again: rm -r {entry}"
        what = "a cached entry is damaged and cannot be removed"
        raise StorageError("damaged-cache", what, where=str(entry), why=f"{why}\n{error.why}", hint=hint) from error
    watch, text = _WATCHES[-1], f"{entry.parent.name}/{entry.name[:24]}: {why}; it was removed and is made again"
    watch.damages.append(text)
    watch.on_damage(f"damaged-cache: {text}")


def remove_entry(entry: Path) -> None:
    """Remove an entry and its record; the caller holds its lock. A kill leaves nothing that could be taken for it."""
    with storage_errors(entry):
        _record_of(entry).unlink(missing_ok=True)
        if entry.is_symlink() or entry.is_file():
            entry.unlink(missing_ok=True)
        else:
            leftover = entry.with_name(f".{entry.name}.partial-removed-{os.getpid()}")
            with suppress(FileNotFoundError):  # Another process may remove it at the same time.
                entry.rename(leftover)
            shutil.rmtree(leftover, ignore_errors=True)


@dataclass(kw_only=True)
class KeptFolder:
    """A folder that is worked in again and again; `checkpoint` records it now and then while that goes on."""

    path: Path
    _files: SeenFiles
    _recorded: float = 0.0
    _cost: float = 0.0

    def checkpoint(self) -> None:
        """Record what is there if that was not done lately, so that a kill costs little; call it at each step."""
        if (time.monotonic() - self._recorded) * CHECKPOINT_SHARE >= self._cost:
            self.record(ended=False)

    def record(self, *, ended: bool) -> None:
        """Record what is there."""
        started = time.monotonic()
        self._files = _seen_in(self.path, self._files, hashed=False)
        _write(self.path, _Record(place=str(self.path), ended=ended, files=self._files))
        self._recorded = time.monotonic()
        self._cost = self._recorded - started


@contextmanager
def kept_folder(folder: Path, on_wait: Callable[[], None] = lambda: None) -> Iterator[KeptFolder]:
    """Hold a folder of the cache, alone, that is worked in and kept; what is in it is what was left there.

    A damaged one is emptied with a note, and one that lay elsewhere, whose files name other folders, without. After a
    kill, what was not recorded is removed, but for `NINJAS_OWN`.
    """
    with locked(folder, on_wait):
        remove_leftovers(folder)
        known = _read(folder)
        if folder.is_dir() and not (known and known.place == str(folder)):
            remove_entry(folder)
            known = None
        if known and folder.is_dir():
            now = _seen_in(folder, known.files, hashed=is_verifying())
            if known.ended and (why := _difference(known.files, now)):
                discard(folder, why)
            elif not known.ended:
                _remove_unrecorded(folder, known.files, now)
        with storage_errors(folder):
            folder.mkdir(exist_ok=True)
        kept = KeptFolder(path=folder, _files=known.files if known else {})
        kept.record(ended=False)
        ended = False
        try:
            yield kept
            ended = True
        finally:
            with suppress(StorageError):  # Then what changed since the last checkpoint is removed by the next build.
                kept.record(ended=ended)


def _remove_unrecorded(folder: Path, known: SeenFiles, now: SeenFiles) -> None:
    with storage_errors(folder):
        for name, seen in now.items():
            before = known.get(name)
            same = before is not None and before.content == seen.content
            if seen != _FOLDER and not same and Path(name).name not in NINJAS_OWN:
                (folder / name).unlink(missing_ok=True)


def _difference(known: Mapping[str, Seen], now: Mapping[str, Seen]) -> str:
    """Name the first file that differs from what was recorded, and how."""
    if known == now:
        return ""
    for name in sorted(known.keys() | now.keys()):
        before, after = known.get(name), now.get(name)
        if before is None:
            return f"{name} was added"
        if after is None:
            return f"{name or 'it'} is missing"
        if before.content != after.content:
            return f"{name or 'it'} has changed"
    return ""


def _seen_in(entry: Path, known: Mapping[str, Seen], *, hashed: bool) -> SeenFiles:
    """Look at all of an entry; without `hashed`, what `stat` says the same of as before is taken to be the same.

    What vanishes meanwhile is not there: compilers remove temporary files, other builds damaged entries.
    """
    files: SeenFiles = {}
    with storage_errors(entry):
        for name, path, found in _walk(entry):
            if found is None:
                files[name] = _FOLDER
                continue
            state = _state(found)
            before = None if hashed else known.get(name)
            same = before is not None and state and before.state == state
            with suppress(FileNotFoundError):
                files[name] = before if before and same else Seen(_content(path, found), state)
    return files


def seen_in(entry: Path) -> SeenFiles:
    """Look at a file, or all of a folder, that need not be the cache's; nothing of what is not there."""
    return _seen_in(entry, {}, hashed=True)


def is_as_seen(entry: Path, known: SeenFiles) -> bool:
    """Whether a file or folder has the content that `seen_in` saw; False for what cannot be read."""
    with suppress(StorageError):
        return not _difference(known, _seen_in(entry, known, hashed=is_verifying()))
    return False


def _walk(entry: Path) -> Iterator[tuple[str, str, os.stat_result | None]]:
    """Yield name, path and status of all below an entry, None for folders, once opened; of a file, its own."""
    with suppress(FileNotFoundError):
        found = entry.stat()
        if not stat.S_ISDIR(found.st_mode):
            yield "", str(entry), found
            return
    folders = [("", str(entry))]
    while folders:
        name, folder = folders.pop()
        with suppress(FileNotFoundError), os.scandir(folder) as children:
            if name:
                yield name, folder, None
            for child in children:
                inner = f"{name}/{child.name}" if name else child.name
                if child.is_dir(follow_symlinks=False):
                    folders.append((inner, child.path))
                    continue
                with suppress(FileNotFoundError):
                    yield inner, child.path, child.stat(follow_symlinks=False)


def _state(found: os.stat_result) -> str:
    """Return what `stat` says of a file; nothing of one that was changed just now, so that it is read again."""
    if found.st_ctime_ns > time.time_ns() - CLOCK_TICK_NS:
        return ""
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino} {found.st_mode:o}"


def _content(path: str, found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return f"link {Path(path).readlink()}"
    return ("x " if found.st_mode & stat.S_IXUSR else "- ") + sha256_of(Path(path))


def _make_read_only(folder: Path) -> None:
    if os.name == "nt":  # where such a file cannot be removed either
        return
    with storage_errors(folder):
        for _, path, found in _walk(folder):
            if found and stat.S_ISREG(found.st_mode):
                Path(path).chmod(stat.S_IMODE(found.st_mode) & ~0o222)


def _record_of(entry: Path) -> Path:
    return entry.with_name(f".{entry.name}.record")


def _write(entry: Path, record: _Record) -> None:
    files = {name: (seen.content, seen.state) for name, seen in record.files.items()}
    document = {"form": FORM, "place": record.place, "ended": record.ended, "files": files}
    write_atomically(_record_of(entry), json.dumps(document, separators=(",", ":")), durable=False)


def _read(entry: Path) -> _Record | None:
    """Return the record of an entry; None without one that can be read, as one that is damaged itself."""
    try:
        document: Any = json.loads(_record_of(entry).read_bytes())
        if document["form"] != FORM:
            return None
        files = {name: Seen(str(content), str(state)) for name, (content, state) in document["files"].items()}
        return _Record(place=str(document["place"]), ended=bool(document["ended"]), files=files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
