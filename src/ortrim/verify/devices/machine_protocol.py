"""How a machine under qemu is told what to run, and how it answers. Pure.

Answers come over a port of their own (`virtio-serial`), not over the console: the kernel writes its messages into the
console at any moment, in the middle of a line too, and whatever a program prints ends up there. The port carries bytes
as they are, eight megabytes in about a second, and needs no module of the kernel. Over it go the marks `@@BEGIN` and
`@@EXIT code` of each command and, after `@@FILES`, what lies in `/out` as a `newc` archive, which ends by itself: an
answer that was cut off cannot be taken for a whole one.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ortrim.verify.devices.initramfs import BadArchive, read_archive

SHELL: Final = "/bin/busybox"
PAYLOAD: Final = "/payload"
OUT: Final = "/out"
MARKS: Final = re.compile(rb"@@BEGIN\n(?:@@EXIT (\d{1,3})\n)?")
FILES: Final = b"@@FILES\n"
LONGEST_MARK: Final = 12

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
cd {OUT} && {SHELL} find . | {SHELL} cpio -o -H newc >&3
exec 3>&-
{SHELL} poweroff -f
"""
"""The first program. It has the kernel grant every allocation and end who uses too much, as Android does, so that it is
always the kernel that tells of too little memory. It ends the machine by itself after a while, so that none goes on
when nobody is left to stop it. A command's standard error goes to the console."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back: the exit code of each command that ended, as a shell gives it, and the files of `/out` by name.

    `begun` counts the commands that were begun; `files` is None when the answer was cut off before its end.
    """

    begun: int
    exit_codes: tuple[int, ...]
    files: Mapping[str, bytes] | None


def init_script(commands: Sequence[Sequence[str]], limit_seconds: float) -> str:
    """Return `/init` for a machine that runs the commands in turn; the output of number `n` goes to `/out/n`."""
    lines = [
        f"echo @@BEGIN >&3\n"
        f"{SHELL} env -i LC_ALL=C.UTF-8 PATH=/bin {shlex.join(words)} </dev/null >{OUT}/{number} 3>&-\n"
        f"echo @@EXIT $? >&3"
        for number, words in enumerate(commands)
    ]
    return INIT.replace("@limit@", str(max(1, round(limit_seconds)))).replace("@commands@", "\n".join(lines))


def read_answer(data: bytes) -> Answer:
    """Read what came over the port, however much of it came. Raises `BadArchive` for what no machine of ours sends."""
    at, begun, codes = 0, 0, []
    while (found := MARKS.match(data, at)) is not None:
        begun, at = begun + 1, found.end()
        codes += [int(found[1])] if found[1] else []
    rest = data[at:]
    if rest.startswith(FILES):
        return Answer(begun=begun, exit_codes=tuple(codes), files=_files(rest[len(FILES) :]))
    if len(rest) >= LONGEST_MARK or b"\n" in rest:
        raise BadArchive(f"there is no mark at byte {at}")
    return Answer(begun=begun, exit_codes=tuple(codes), files=None)


def _files(archive: bytes) -> Mapping[str, bytes] | None:
    """Return the regular files of the archive; None when it was cut off."""
    try:
        entries = read_archive(archive)
    except BadArchive:
        return None
    regular = {entry.name.removeprefix("./"): entry.content for entry in entries if entry.is_regular}
    for name in regular:
        if name.startswith("/") or ".." in name.split("/"):
            raise BadArchive(f"a file would land outside: {name[:100]!r}")
    return MappingProxyType(regular)
