"""Fetched files where an app's build takes them, all of them or none, and the lock file that says what they are."""

import hashlib
import json
import shutil
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ortrim.base.cache import cache_folder, is_kept, locked, record_entry, remove_leftovers
from ortrim.base.checksums import LARGEST_SUMS, SUMS, FileEntry, checksums_text, first_clash, is_plain_path, parse_sums
from ortrim.base.console import Step
from ortrim.base.files import sha256_of, storage_errors, write_atomically
from ortrim.base.http import Clock, OnBytes
from ortrim.base.json import first_fault, from_json, to_json
from ortrim.errors import StorageError
from ortrim.github.client import Commit, GitHub, RetryingSession, Traffic
from ortrim.github.repositories import FULL_NAME

NAME: Final = "ortrim.lock"
OUTPUT: Final = "ortrim-runtime"
CONFIG: Final = ConfigDict(extra="forbid", strict=True)


def _plain(path: str) -> str:
    if not is_plain_path(path):
        raise ValueError("no plain path")
    return path


def _full_name(name: str) -> str:
    if FULL_NAME.fullmatch(name) is None:
        raise ValueError("not owner/name")
    return name


PlainPath = Annotated[str, AfterValidator(_plain)]
FullName = Annotated[str, AfterValidator(_full_name)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9:][A-Za-z0-9.:-]{0,251}$")]
Word = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class LockedArtifact:
    """An artifact of a run, or an archive of a release: the SHA-256 is that of the archive as GitHub stores it."""

    name: Word
    sha256: Sha256


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class LockedFile:
    """A file: its path in the output, what it is, and the workflow that vouches for it, empty for none checked."""

    path: PlainPath
    size: Annotated[int, Field(ge=0, le=2**53)]
    sha256: Sha256
    signer: Word = ""

    @property
    def entry(self) -> FileEntry:
        """The file without its signer."""
        return FileEntry(path=self.path, size_bytes=self.size, sha256=self.sha256)


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class Origin:
    """Where files came from: a release by its tag, or else a run; what was chosen of it, empty for everything."""

    host: Host
    repository: FullName
    release: Word = ""
    run: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    commit: Commit
    spec: Word = ""
    target: Word = ""

    @property
    def words(self) -> str:
        """Repository and release or run, for people."""
        return f"{self.repository} {self.release or f'run {self.run}'}"


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock file's content; `files` are in order of their paths, `output` is the folder that they go to."""

    origin: Origin
    output: str = OUTPUT
    artifacts: tuple[LockedArtifact, ...] = ()
    files: tuple[LockedFile, ...]


HEADING: Final = (
    "# The files of `invoke fetch`: keep this file under version control.\n"
    "# `invoke fetch` gives the same files again; `invoke fetch --update` changes this file.\n"
)
LARGEST: Final = 4 << 20


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class _Document:
    schema_: Annotated[Literal["ortrim-lock/1"], Field(alias="schema")]
    origin: Origin
    output: PlainPath = OUTPUT
    artifact: tuple[LockedArtifact, ...] = ()
    file: Annotated[tuple[LockedFile, ...], Field(min_length=1)]


DOCUMENT: Final = TypeAdapter(_Document)


def read_lock(path: Path) -> Lock | None:
    """Return what a lock file holds, None when there is none."""
    with storage_errors(path):
        if not path.exists():
            return None
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    return parse_lock(content, str(path))


def parse_lock(content: bytes, where: str = NAME) -> Lock:
    """Read a lock file's bytes."""
    try:
        document = DOCUMENT.validate_json(json.dumps(tomllib.loads(content.decode())))
    except ValidationError as error:
        raise damaged(where, first_fault(error)) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(where, str(error)) from error
    lock = Lock(origin=document.origin, output=document.output, artifacts=document.artifact, files=document.file)
    problem = next(_problems(lock), "too large" if len(content) > LARGEST else "")
    if problem:
        raise damaged(where, problem)
    return lock


def lock_text(lock: Lock) -> str:
    """Return the text of a lock file."""
    origin = {name: value for name, value in asdict(lock.origin).items() if value}
    parts = [
        HEADING + _lines({"schema": "ortrim-lock/1", "output": lock.output}),
        "[origin]\n" + _lines(origin),
        *(f"[[artifact]]\n{_lines({'name': each.name, 'sha256': each.sha256})}" for each in lock.artifacts),
        *(f"[[file]]\n{_lines(_file_values(each))}" for each in lock.files),
    ]
    return "\n".join(parts)


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock file, all of it or nothing."""
    text = lock_text(lock).encode()
    if len(text) > LARGEST:
        what, hint = f"would have {len(text):,} bytes; {LARGEST:,} is the most", "fetch less: --spec, --target"
        raise StorageError("lock-too-large", what, where=str(path), hint=hint)
    write_atomically(path, text)


def damaged(where: str, why: str) -> StorageError:
    """Return the diagnostic of a lock file that cannot be read."""
    hint = "restore it from version control, or remove it and fetch again"
    return StorageError("lock-damaged", "is not a lock file of ortrim", where=where, why=why, hint=hint)


def _file_values(file: LockedFile) -> dict[str, Any]:
    values = {"path": file.path, "size": file.size, "sha256": file.sha256}
    return {**values, "signer": file.signer} if file.signer else values


def _problems(lock: Lock) -> Iterator[str]:
    """Yield what no single field can tell."""
    if bool(lock.origin.release) == bool(lock.origin.run):
        yield "it names a release and a run, or neither"
    if clash := first_clash([SUMS, *(file.path for file in lock.files)]):
        yield f"not every file system can hold {clash[0]!r} beside {clash[1]!r}"
    if lock.origin.run and not lock.artifacts:
        yield "a run has artifacts"


def _lines(values: dict[str, Any]) -> str:
    """Write keys and values. A string of JSON is one of TOML, but for DEL, which no value has."""
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())


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
        """Copy a file out of the store."""
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
    """Return the user's own store."""
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
    it raises, they are taken back. The caller sees to it that nobody else is at work there.
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
    return all(not (output / path).is_symlink() and _is_sound(output / path, entry) for path, entry in wanted.items())


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
    return GitHub(client.site, client.token, session)


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
