"""Files in and out of an emulated machine: what it holds when it starts, and what a run saved in it.

- How a machine under qemu gets its commands, and how it answers. Pure.
- Archives in cpio's `newc` form, which Linux unpacks at start. Pure.
- What a program or library needs of a machine to be linked at start.
"""

import gzip
import io
import math
import re
import shlex
import stat
import tarfile
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from ortrim.base.files import storage_errors
from ortrim.base.tools import Emulation
from ortrim.binaries.elf import BoundedStream, diagnosed, read_bytes
from ortrim.errors import BinaryError
from ortrim.sources.root_file_systems import MachineParts

MAGIC: Final = b"070701"
TRAILER: Final = "TRAILER!!!"
LARGEST_CONTENT: Final = 2**32 - 1
LONGEST_NAME: Final = 4095
COMPRESSION: Final = 6


class BadAnswer(ValueError):
    """The bytes are not what a machine of ours sends."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file, folder or link: `mode` holds type and permissions; a link's content is where it leads.

    `name` is relative, with slashes.
    """

    name: str
    mode: int
    content: bytes = b""


def folder(name: str) -> Entry:
    """Return a folder."""
    return Entry(name=name, mode=stat.S_IFDIR | 0o755)


def regular(name: str, content: bytes, *, executable: bool = False) -> Entry:
    """Return a file."""
    return Entry(name=name, mode=stat.S_IFREG | (0o755 if executable else 0o644), content=content)


def link(name: str, target: str) -> Entry:
    """Return a symbolic link."""
    return Entry(name=name, mode=stat.S_IFLNK | 0o777, content=target.encode())


def with_folders(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries with every folder that they lie in, sorted, so that folders come before what is in them."""
    given = {entry.name: entry for entry in entries}
    parts = (entry.name.split("/") for entry in given.values())
    needed = {"/".join(words[:length]) for words in parts for length in range(1, len(words))}
    missing = {name: folder(name) for name in needed if name not in given}
    return tuple(entry for _, entry in sorted({**missing, **given}.items()))


def write_archive(entries: Sequence[Entry]) -> bytes:
    """Return the archive; inode numbers are the entries' own, times, owners and devices are 0."""
    parts = [_written(entry, number) for number, entry in enumerate(entries, start=1)]
    return b"".join([*parts, _written(Entry(name=TRAILER, mode=0), 0, trailer=True)])


def compress(archive: bytes) -> bytes:
    """Return the archive as gzip, without a time or a name."""
    return gzip.compress(archive, COMPRESSION, mtime=0)


def _written(entry: Entry, number: int, *, trailer: bool = False) -> bytes:
    name = entry.name.encode(errors="surrogateescape")
    wrong = not name or b"\0" in name or name.startswith(b"/") or len(name) > LONGEST_NAME
    if (wrong or entry.name == TRAILER) and not trailer:
        raise ValueError(f"an archive cannot hold the name {entry.name[:100]!r}")
    if len(entry.content) > LARGEST_CONTENT:
        raise ValueError(f"an archive cannot hold {len(entry.content)} bytes in one file")
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    numbers = (number, entry.mode, 0, 0, links, 0, len(entry.content), 0, 0, 0, 0, len(name) + 1, 0)
    header = MAGIC + b"".join(b"%08X" % value for value in numbers)
    return _padded(header + name + b"\0") + _padded(entry.content)


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)


SHELL: Final = "/bin/busybox"
PAYLOAD: Final = "/payload"
OUT: Final = "/out"
MARKS: Final = re.compile(rb"@@BEGIN\n(?P<late>@@LATE\n)?(?:@@EXIT (?P<code>\d{1,3})\n)?")
FILES: Final = b"@@FILES\n"
END: Final = b"@@END\n"
LONGEST_MARK: Final = 12
KILLED: Final = b"137"
"""The exit code of what was killed; another one is that of a command that just made it."""

INIT: Final = f"""\
#!{SHELL} sh
{SHELL} mount -t proc proc /proc
{SHELL} mount -t sysfs sys /sys
{SHELL} mount -t devtmpfs dev /dev
echo 1 >/proc/sys/vm/overcommit_memory
({SHELL} sleep @limit@; {SHELL} poweroff -f) &
tries=0
until [ -c /dev/vport0p1 ] || [ $tries -ge 200 ]; do {SHELL} usleep 50000; tries=$((tries + 1)); done
exec 3>/dev/vport0p1
cd /
@commands@
{SHELL} cp /proc/cpuinfo /proc/meminfo {OUT}/
{SHELL} uname -r >{OUT}/release
echo @@FILES >&3
{SHELL} tar -c -f - -C {OUT} . >&3
echo @@END >&3
exec 3>&-
{SHELL} poweroff -f
"""
"""The first program. It has the kernel grant every allocation and kill the process that uses too much, as Android does,
so that the kernel always reports too little memory. It ends the machine after a while, so that none runs for ever. A
command's standard error goes to the console."""
COMMAND: Final = f"""\
echo @@BEGIN >&3
{SHELL} env -i LC_ALL=C.UTF-8 PATH=/bin @words@ </dev/null >{OUT}/@number@ 3>&- & r=$!
({SHELL} sleep @limit@; echo @@LATE >&3; kill -9 $r) & g=$!
wait $r; c=$?; kill $g; wait $g
echo @@EXIT $c >&3"""


@dataclass(frozen=True, kw_only=True)
class PushAnswer:
    """What came back: the exit code of each command that ended, as a shell gives it, and the files of `/out` by name.

    `begun` counts the commands that were begun, `late` those that were killed at their limit; `files` is None when the
    answer was cut off before its end.
    """

    begun: int
    late: int
    exit_codes: tuple[int, ...]
    files: Mapping[str, bytes] | None


def init_script(commands: Sequence[Sequence[str]], *, limit_seconds: float, machine_seconds: float) -> str:
    """Return `/init` for a machine that runs the commands in turn; the output of number `n` goes to `/out/n`.

    Each command is killed after `limit_seconds`, and the machine ends after `machine_seconds`, come what may.
    """
    # What is not ours comes in last, so that no mark of ours can be in it.
    command = COMMAND.replace("@limit@", _seconds(limit_seconds))
    lines = [
        command.replace("@number@", f"{at}").replace("@words@", shlex.join(each)) for at, each in enumerate(commands)
    ]
    return INIT.replace("@limit@", _seconds(machine_seconds)).replace("@commands@", "\n".join(lines))


def _seconds(seconds: float) -> str:
    return str(max(1, math.ceil(seconds)))


def read_answer(data: bytes) -> PushAnswer:
    """Read what came over the port, however much of it came."""
    at, marks = 0, []
    while (found := MARKS.match(data, at)) is not None:
        marks.append(found)
        at = found.end()
    rest = data[at:]
    if not rest.startswith(FILES) and (len(rest) >= LONGEST_MARK or b"\n" in rest):
        raise BadAnswer(f"there is no mark at byte {at}")
    codes = tuple(int(mark["code"]) for mark in marks if mark["code"])
    return PushAnswer(
        begun=len(marks),
        late=sum(1 for mark in marks if mark["late"] and mark["code"] in {None, KILLED}),
        exit_codes=codes,
        files=_files(rest[len(FILES) :]) if rest.startswith(FILES) else None,
    )


def _files(sent: bytes) -> Mapping[str, bytes] | None:
    """Return the regular files of the tar archive that was sent; None when it was cut off."""
    archive, ended, _ = sent.rpartition(END)
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                found |= {member.name.removeprefix("./"): content.read()} if content else {}
    except (tarfile.TarError, ValueError, OverflowError):
        return None
    for name in found:
        if name.startswith("/") or ".." in name.split("/"):
            raise BadAnswer(f"a file would land outside: {name[:100]!r}")
    return MappingProxyType(found) if ended else None


def link_needs(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the linker that an ELF file asks the kernel for, empty for none, and the libraries it needs, by name.

    Nothing for what is no ELF file: the machine itself will say so better.
    """
    try:
        with diagnosed(path):
            elf = ELFFile(BoundedStream(read_bytes(path)))
            segments: list[Any] = list(elf.iter_segments())
            interpreters = [part.get_interp_name() for part in segments if isinstance(part, InterpSegment)]
            dynamic = [part for part in segments if isinstance(part, DynamicSegment)]
            tags: list[Any] = [tag for part in dynamic for tag in part.iter_tags("DT_NEEDED")]
            needed = tuple(str(tag.needed) for tag in tags)
            return "".join(interpreters[:1]), needed
    except BinaryError:
        return "", ()


def libraries_for(files: Sequence[Path], root: Path, folders: Sequence[str]) -> dict[str, Path]:
    """Return the files of a machine's `root` that these files need, by their names in that root.

    Libraries are looked for in `folders` of the root, and each one's own needs are followed. What is not there is
    left out.
    """
    found: dict[str, Path] = {}
    waiting = deque(link_needs(file) for file in files)
    while waiting:
        interpreter, needed = waiting.popleft()
        wanted = [interpreter.lstrip("/"), *(f"{folder}/{name}" for name in needed for folder in folders)]
        for name in wanted:
            inside = bool(name) and ".." not in PurePosixPath(name).parts
            if inside and name not in found and (root / name).is_file():
                found[name] = root / name
                waiting.append(link_needs(root / name))
    return found


SAVED: Final = "saved"
OUTPUTS: Final = f"{OUT}/{SAVED}"
"""Where the runner saves outputs in the machine."""
PROGRAMS: Final = ("/runner", "/library.so")
"""How the names of files end that are linked in the machine, as `payload` names them."""


def machine_entries(
    emulation: Emulation, parts: MachineParts, shell: Path, payload: Mapping[str, Path]
) -> tuple[Entry, ...]:
    """Return a payload, by its names in the machine, with the shell and the libraries that its programs need."""
    folders = [f"usr/lib/{name}" for name in emulation.library_folders]
    programs = [path for name, path in payload.items() if name.endswith(PROGRAMS)]
    libraries = libraries_for(programs, parts.root, folders)
    files = {SHELL.lstrip("/"): shell, **libraries, **payload}
    return tuple(_entry(name, path) for name, path in files.items())


def save_outputs(files: Mapping[str, bytes], destination: Path) -> None:
    """Write what the runner saved, of all files that came back; their names were checked when they were read."""
    with storage_errors(destination):
        for name, content in files.items():
            if name.startswith(f"{SAVED}/"):
                target = destination / name.removeprefix(f"{SAVED}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def _entry(name: str, path: Path) -> Entry:
    with storage_errors(path):
        executable = name.endswith("/runner") or bool(path.stat().st_mode & stat.S_IXUSR)
        return regular(name, path.read_bytes(), executable=executable)
