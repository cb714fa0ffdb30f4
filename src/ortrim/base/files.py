"""Files: digests, writes that are all or nothing, disk space, temporary folders, and files that travel with ortrim."""

import ast
import errno
import hashlib
import os
import secrets
import shutil
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from platformdirs import user_cache_path

from ortrim.errors import StorageError

FULL_DISK: Final = ("No space left on device", "Disk quota exceeded")
"""How programs say that a disk is full, whatever their language."""
FULL_BYTES: Final = 1 << 16  # less than this is what a program leaves that stopped for want of space


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what the operating system says about `path` into a `StorageError`."""
    try:
        yield
    except OSError as error:
        raise _diagnosed(error, path) from error


def require_writable(folder: Path, option: str = "--output") -> None:
    """Find out before the work whether files can be written into a folder that need not exist yet; makes nothing.

    `option` is what chooses another one, empty when nothing does.
    """
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    try:
        with storage_errors(folder):
            if not nearest.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(nearest))
            if not os.access(nearest, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "no write permission", str(nearest))
    except StorageError as error:
        error.hint += f", or choose another folder with {option}" if option else ""
        raise


_PARSING: Final = threading.Lock()
"""CPython 3.11 counts how deep it is in a syntax tree for all threads together, and stumbles (its issue 106905)."""


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in lower-case hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def code_digest(files: Iterable[Path]) -> str:
    """Return one digest of source files by their folders' and own names, without Python's comments and docstrings."""
    listing = "".join(sorted(f"{file.parent.name}/{file.name} {_code_of(file)}\n" for file in files))
    return hashlib.sha256(listing.encode()).hexdigest()


def _code_of(path: Path) -> str:
    if path.suffix != ".py":
        return sha256_of(path)
    return _digest_of_code(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=512)
def _digest_of_code(text: str) -> str:
    with _PARSING:
        tree = ast.parse(text)
    said = {
        line
        for node in _statements(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = (line for number, line in enumerate(text.splitlines(), start=1) if number not in said)
    kept = (line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what a module's text consists of down to its statements; expressions, most of a tree, hold none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield child
            yield from _statements(child)


def write_atomically(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Write a file so that a reader sees the old content or the new, never a part; makes the folder if needed.

    Without `durable` the disk is not waited for: after a power cut the file may be anything.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(path, f".{path.name[:100]}.") as temporary:
            _write(temporary, content.encode() if isinstance(content, str) else content, durable=durable)
            temporary.chmod(0o644)
            temporary.replace(path)


@contextmanager
def temporary_beside(path: Path, prefix: str) -> Iterator[Path]:
    """Yield a path beside another that nothing has yet, and remove what is there in the end.

    It is known before anything is made, unlike one of `tempfile`: an interrupt at any moment leaves nothing.
    """
    temporary = path.with_name(f"{prefix}{secrets.token_hex(8)}")
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True) if temporary.is_dir() else temporary.unlink(missing_ok=True)


def write_if_changed(path: Path, content: str) -> bool:
    """Write a text file unless it holds that text already, so that builds see no new time; return whether it was."""
    with storage_errors(path):
        if path.is_file() and path.read_bytes() == content.encode():
            return False
    write_atomically(path, content)
    return True


def _write(path: Path, data: bytes, *, durable: bool) -> None:
    with path.open("xb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())


def _diagnosed(error: OSError, path: Path) -> StorageError:
    where, why = str(path), str(error)
    if ran_out_of_space(error, path):
        return disk_full("there is no space left", path, why=why)
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return _not_permitted(path, why)
    if error.errno in {errno.EEXIST, errno.ENOTDIR, errno.EISDIR}:
        hint = "move the file or folder that has this name out of the way"
        return StorageError("path-in-the-way", "something else has this name", where=where, why=why, hint=hint)
    return StorageError("storage-failed", "could not be read or written", where=where, why=why)


def _not_permitted(path: Path, why: str) -> StorageError:
    where = str(path)
    if path.is_file() and not os.access(path, os.R_OK):
        hint = "give this user read access to it"
        return StorageError("not-permitted", "cannot be read by this user", where=where, why=why, hint=hint)
    nearest = next(each for each in (path.absolute(), *path.absolute().parents) if each.is_dir())
    variable = _chosen_by(path.absolute())
    others = (f"give this user write access to {nearest}", f"choose another folder with {variable}")
    # Nobody should be able to write to /, where the home folder of an account without one would be.
    hint = others[0] if not variable else others[1] if nearest == Path(nearest.anchor) else ", or ".join(others)
    return StorageError("not-permitted", "cannot be written by this user", where=where, why=why, hint=hint)


def require_space(folder: Path, size_bytes: int, work: str) -> None:
    """Raise `disk-full` unless `work`, which writes about so much below `folder`, has room as far as is known."""
    free = free_bytes(folder)
    if free is not None and free < size_bytes:
        raise disk_full(f"{work} takes about {_megabytes(size_bytes)}, and {_megabytes(free)} are free", folder)


def ran_out_of_space(error: OSError, path: Path) -> bool:
    """Whether an error is that of a full disk; NumPy's, on a file that it could not write to its end, has no number."""
    return error.errno in {errno.ENOSPC, errno.EDQUOT} or (error.errno is None and is_full(path))


def says_full(path: Path, printed: str) -> bool:
    """Whether a program that failed did so for want of space: it says so, or has left none below `path`."""
    return any(words in printed for words in FULL_DISK) or is_full(path)


def is_full(path: Path) -> bool:
    """Whether nothing can be written to a path, as the program leaves it that ran out of space there."""
    free = free_bytes(path)
    return free is not None and free < FULL_BYTES


def disk_full(what: str, *places: Path, where: str = "", why: str = "", hint: str = "") -> StorageError:
    """Return the diagnostic of a full disk, of the one of the `places` with the least room; it names a remedy."""
    place = min(places, key=lambda each: free_bytes(each) or 0)
    mount, free = _existing(place), free_bytes(place)
    while not mount.is_mount():
        mount = mount.parent
    left = f"the file system of {mount} has {_megabytes(free or 0)} free"
    variable = _chosen_by(place)
    other = f", or name a folder on another disk in the environment variable {variable}" if variable else ""
    remedy = f"{hint}free some space there{other}; then run the same command again: finished work is kept"
    why = "\n".join(filter(None, (why, left)))
    return StorageError("disk-full", what, where=where or str(place), why=why, hint=remedy)


def free_bytes(path: Path) -> int | None:
    """Return how much a user may still write below a path that need not exist yet; None where nobody knows."""
    try:
        usage = shutil.disk_usage(_existing(path))
    except OSError:
        return None
    return usage.free if usage.total else None


def chosen_folder(variable: str, otherwise: Callable[[str], Path]) -> Path:
    """Return the folder that an environment variable names, absolute, or else ortrim's own among the user's."""
    chosen = os.environ.get(variable)
    try:
        return Path(chosen).expanduser().absolute() if chosen else otherwise("ortrim")
    except RuntimeError as error:
        hint = f"set HOME, or name a folder by its whole path in the environment variable {variable}"
        raise StorageError(
            "no-home", "this user has no home folder", where=variable, why=str(error), hint=hint
        ) from error


def _existing(path: Path) -> Path:
    whole = Path(os.path.realpath(path))
    return next(each for each in (whole, *whole.parents) if each.exists())


def _chosen_by(place: Path) -> str:
    """Return the environment variable that sets a folder of ortrim; none for a folder that the user named."""
    whole = Path(os.path.realpath(place))
    try:
        if whole.is_relative_to(os.path.realpath(chosen_folder("ORTRIM_CACHE", user_cache_path))):
            return "ORTRIM_CACHE"
        temporary = Path(os.path.realpath(tempfile.gettempdir()))
    except (StorageError, OSError):
        return ""
    ours = whole == temporary or (temporary in whole.parents and whole.relative_to(temporary).parts[0][:6] == "ortrim")
    return "TMPDIR" if ours else ""


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes < 1e7 else f"{size_bytes / 1e6:,.0f} MB"


PREFIX: Final = "ortrim."


@contextmanager
def own_temporary_folder() -> Iterator[None]:
    """Let Python's `tempfile` use a folder of this process for a while, and remove what killed processes left.

    Programs keep the environment's TMPDIR: some live on, such as `adb`. Where no folder can be made or locked, and on
    Windows, all stays as it is.
    """
    before = tempfile.tempdir
    made = _made() if hasattr(os, "geteuid") else None
    if made is None:
        yield
        return
    folder, descriptor = made
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _made() -> tuple[Path, int] | None:
    """Return a new folder and the descriptor that locks it."""
    with suppress(OSError):
        place = Path(tempfile.gettempdir())
        for leftover in place.glob(f"{PREFIX}*"):
            _remove_if_left(leftover)
        while True:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            if (descriptor := _locked(folder)) is not None:
                return folder, descriptor
    return None


def _remove_if_left(folder: Path) -> None:
    """Remove a folder that this user made and that no process has locked."""
    with suppress(OSError):
        if folder.lstat().st_uid == os.geteuid() and (descriptor := _locked(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """Lock a folder; None when another process holds it, or has removed it meanwhile."""
    import fcntl  # noqa: PLC0415 - not on Windows

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.lstat()):
            return descriptor
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError | FileNotFoundError):
            return None
        raise
    os.close(descriptor)
    return None


PACKAGE: Final = Path(__file__).resolve().parents[1]


def shipped_folder(name: str) -> Path:
    """Return the folder `name` (`runner`, `buildspecs`) as it was installed, or the checkout's own."""
    installed = PACKAGE / "resources" / name
    return installed if installed.is_dir() else PACKAGE.parents[1] / name


def shipped_words(name: str) -> dict[str, Any]:
    """Return a table of words that ortrim ships in `resources/`, by its path there without the ending."""
    return tomllib.loads((PACKAGE / "resources" / f"{name}.toml").read_text(encoding="utf-8"))
