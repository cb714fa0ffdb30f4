"""Putting fetched files where an app's build takes them: all of them at once, or none.

- The cache of fetched files: each under its SHA-256, shared by all apps of a user.
- Several downloads at once, with their progress added up; when one fails, the others are given up.
"""

import hashlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from pydantic import ValidationError

from ortrim.base.cache import cache_folder, is_kept, locked, record_entry, remove_leftovers
from ortrim.base.checksums import LARGEST_SUMS, SUMS, FileEntry, checksums_text, parse_sums
from ortrim.base.console import Step
from ortrim.base.files import sha256_of, storage_errors, write_atomically
from ortrim.base.http import Clock
from ortrim.base.json import from_json, to_json
from ortrim.errors import StorageError
from ortrim.github.client import GitHub
from ortrim.github.downloads import OnBytes
from ortrim.github.transport import RetryingSession, Traffic

KIND: Final = "downloads"
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Store:
    """A folder with files by digest, and lists of what archives held by the archives' digests."""

    folder: Path

    def path_of(self, sha256: str) -> Path:
        """Return where a file lies, or would."""
        return self.folder / "files" / sha256[:2] / sha256

    def list_of(self, archive: str) -> Path:
        """Return where the list of an archive's files lies, or would."""
        return self.folder / "archives" / f"{archive}.json"

    def has(self, entry: FileEntry) -> bool:
        """Whether a file is there and still what its name says; a damaged one is removed."""
        path = self.path_of(entry.sha256)
        with storage_errors(path):
            if _is_sound(path, entry):
                return True
            if path.is_file():
                with locked(path):  # Another process may have fetched it anew meanwhile.
                    if _is_sound(path, entry):
                        return True
                    path.unlink(missing_ok=True)
        return False

    def missing(self, entries: Iterable[FileEntry]) -> tuple[FileEntry, ...]:
        """Return those of the files that are not there."""
        return tuple(entry for entry in entries if not self.has(entry))

    def adopt(self, folder: Path, listed: Mapping[str, str]) -> tuple[FileEntry, ...]:
        """Move checked files, by path in `folder` and digest, into the store, and return what they are."""
        entries = []
        for path, sha256 in sorted(listed.items()):
            source, destination = folder / path, self.path_of(sha256)
            with storage_errors(destination):
                entries.append(FileEntry(path=path, size_bytes=source.stat().st_size, sha256=sha256))
                destination.parent.mkdir(parents=True, exist_ok=True)
                source.chmod(0o644)
                source.replace(destination)
        return tuple(entries)

    def remember(self, archive: str, entries: tuple[FileEntry, ...]) -> None:
        """Write down what an archive held."""
        path = self.list_of(archive)
        with locked(path):  # Until it is recorded, another fetch would take it for damaged.
            write_atomically(path, to_json(entries))
            record_entry(path)

    def remembered(self, archive: str) -> tuple[FileEntry, ...] | None:
        """Return what an archive held if all of that is still there, otherwise None."""
        path = self.list_of(archive)
        with storage_errors(path):
            if not is_kept(path):
                return None
            try:
                entries = from_json(tuple[FileEntry, ...], path.read_bytes())
            except ValidationError:
                return None
        return None if self.missing(entries) else entries

    def copy(self, entry: FileEntry, destination: Path) -> None:
        """Copy a file out of the store. Raises `StorageError` (`cache-damaged`) if it is not what it was."""
        digest = hashlib.sha256()
        source = self.path_of(entry.sha256)
        with storage_errors(destination), source.open("rb") as file, destination.open("xb") as copy:
            while chunk := file.read(CHUNK_BYTES):
                digest.update(chunk)
                copy.write(chunk)
        if digest.hexdigest() != entry.sha256:
            what, hint = "changed while it was read", "run the same command again: it is downloaded again"
            raise StorageError("cache-damaged", what, where=str(source), hint=hint)


def _is_sound(path: Path, entry: FileEntry) -> bool:
    """Whether a file is there and what its name says; one that another process removes meanwhile is not there."""
    try:
        return path.is_file() and path.stat().st_size == entry.size_bytes and sha256_of(path) == entry.sha256
    except FileNotFoundError:
        return False


def user_store() -> Store:
    """Return the user's own store. Raises `StorageError` as `cache_folder` does."""
    return Store(folder=cache_folder(KIND))


SHOWN: Final = 5


def place(
    files: Sequence[FileEntry],
    store: Store,
    output: Path,
    when_placed: Callable[[], None] = lambda: None,
    *,
    recorded: bool = False,
) -> bool:
    """Make a folder hold these files of the store and their `SHA256SUMS`, and nothing else.

    Returns False when it does so already. An earlier one is replaced as a whole, unless it has files that were not
    fetched: of a folder that the lock file has not `recorded` as the output, only what is still in the store counts as
    fetched, since other programs write `SHA256SUMS`, too. `when_placed` is called when the files are in their place; if
    it raises, they are taken back. The caller sees to it that nobody else is at work there. Raises `StorageError`
    (`path-in-the-way`, `cache-damaged`, or what the disk says), and what `when_placed` raises; then the folder is as it
    was.
    """
    with storage_errors(output):
        if _is_right(files, output):
            when_placed()
            return False
        _require_own(output, None if recorded else store)
        output.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(output)
        with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.partial-") as work:
            _fill(Path(work) / "new", files, store)
            _swap(output, Path(work), when_placed)
    return True


def _is_right(files: Iterable[FileEntry], output: Path) -> bool:
    if output.is_symlink() or not output.is_dir():
        return False
    wanted = {entry.path: entry for entry in files}
    if _inside(output) != {*wanted, SUMS} or (output / SUMS).read_bytes() != checksums_text(wanted.values()).encode():
        return False
    return all(_is_as_listed(output / path, entry) for path, entry in wanted.items())


def _is_as_listed(path: Path, entry: FileEntry) -> bool:
    plain = path.is_file() and not path.is_symlink()
    return plain and path.stat().st_size == entry.size_bytes and sha256_of(path) == entry.sha256


def _inside(folder: Path) -> set[str]:
    """Return what is in a folder, but for folders with something in them; links count as themselves."""
    found = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(folder).as_posix() for path in found}


def _require_own(output: Path, store: Store | None) -> None:
    """Refuse a folder that holds what was not fetched, for it is going to be removed."""
    hint = "move it away, or choose another folder with --output"
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise StorageError("path-in-the-way", "is not a separate folder", where=str(output), hint=hint)
    strange = sorted(_inside(output) - _fetched(output, store)) if output.is_dir() else []
    if strange:
        what = "contains a file that was not fetched and would be lost"
        why = ", ".join(strange[:SHOWN]) + (", ..." if len(strange) > SHOWN else "")
        raise StorageError("path-in-the-way", what, where=str(output), why=why, hint=hint)


def _fetched(output: Path, store: Store | None) -> set[str]:
    """Return what a folder's `SHA256SUMS` lists; with a store, what of that the store has."""
    try:
        with (output / SUMS).open("rb") as file:
            listed = parse_sums(file.read(LARGEST_SUMS + 1).decode())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return set()
    return {SUMS, *(path for path, sha256 in listed.items() if store is None or store.path_of(sha256).is_file())}


def _fill(folder: Path, files: Iterable[FileEntry], store: Store) -> None:
    folder.mkdir(mode=0o755)
    for entry in files:
        path = folder / entry.path
        path.parent.mkdir(parents=True, exist_ok=True)
        store.copy(entry, path)
    (folder / SUMS).write_bytes(checksums_text(files).encode())  # the same bytes on every system


def _swap(output: Path, work: Path, when_placed: Callable[[], None]) -> None:
    with ExitStack() as undo:
        if output.exists():
            output.rename(work / "old")
            undo.callback((work / "old").rename, output)
        (work / "new").rename(output)
        undo.callback(output.rename, work / "new")
        when_placed()
        undo.pop_all()
    shutil.rmtree(work / "old", ignore_errors=True)


AT_ONCE: Final = 4


@dataclass(frozen=True, kw_only=True)
class Download:
    """Something to fetch: its name, about how many bytes it has, and how it is fetched."""

    name: str
    size_bytes: int
    run: Callable[[GitHub, OnBytes], None]


class GivenUp(Exception):
    """A download was stopped because another one failed, or by Ctrl-C."""


def download_all(downloads: Sequence[Download], client: GitHub, step: Step) -> Traffic:
    """Fetch everything, a few at a time, each over a connection of its own; return the account of all of them.

    Raises the first thing that goes wrong, once the other downloads have stopped; what was finished stays.
    """
    tally = _Tally(downloads, step)
    clients = [_another(client, tally) for _ in range(min(AT_ONCE, len(downloads)))]
    idle: SimpleQueue[GitHub] = SimpleQueue()
    for each in clients:
        idle.put(each)
    if downloads:
        _run_all(downloads, idle, tally)
    return _sum(each.session.traffic for each in clients)


def _run_all(downloads: Sequence[Download], idle: "SimpleQueue[GitHub]", tally: "_Tally") -> None:
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        try:
            for future in as_completed([pool.submit(_fetch, each, idle, tally) for each in downloads]):
                future.result()
        except BaseException as error:
            tally.stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, GivenUp) and tally.failure is not None:
                raise tally.failure from None
            raise


def _fetch(download: Download, idle: "SimpleQueue[GitHub]", tally: "_Tally") -> None:
    client = idle.get()
    try:
        download.run(client, lambda done, _: tally.there(download, done))
        tally.there(download, download.size_bytes)
    except GivenUp:
        raise
    except BaseException as error:
        tally.fail(error)
        raise
    finally:
        idle.put(client)


def _another(client: GitHub, tally: "_Tally") -> GitHub:
    """Return a further client like this one, whose pauses end when everything is given up."""
    clock = client.session.clock
    own = Clock(monotonic=clock.monotonic, wall=clock.wall, sleep=lambda seconds: tally.sleep(clock.sleep, seconds))
    session = RetryingSession(client.token, clock=own, announce=tally.say)
    return GitHub(client.service, client.token, session)


class _Tally:
    """How far all downloads are together; told of by their threads."""

    def __init__(self, downloads: Sequence[Download], step: Step) -> None:
        self.stopped = threading.Event()
        self.failure: BaseException | None = None
        self._there = dict.fromkeys((each.name for each in downloads), 0)
        self._total = sum(each.size_bytes for each in downloads)
        self._step = step
        self._lock = threading.Lock()

    def there(self, download: Download, done: int) -> None:
        """Take note of the bytes that there are of one download. Raises `GivenUp`."""
        self._check()
        with self._lock:
            self._there[download.name] = done
            words = download.name if len(self._there) == 1 else f"{len(self._there)} downloads"
            self._step.progress(sum(self._there.values()), self._total, words)

    def fail(self, error: BaseException) -> None:
        """Stop all downloads because of what went wrong with one."""
        with self._lock:
            self.failure = self.failure or error
        self.stopped.set()

    def say(self, text: str) -> None:
        """Tell the user of a longer wait."""
        with self._lock:
            self._step.note(text)

    def sleep(self, sleep: Callable[[float], None], seconds: float) -> None:
        """Let time pass, a second at a time. Raises `GivenUp`."""
        while seconds > 0:
            self._check()
            sleep(min(seconds, 1.0))
            seconds -= 1.0

    def _check(self) -> None:
        if self.stopped.is_set():
            raise GivenUp


def _sum(accounts: Iterable[Traffic]) -> Traffic:
    total = Traffic()
    for account in accounts:
        for name, value in vars(account).items():
            setattr(total, name, getattr(total, name) + value)
    return total
