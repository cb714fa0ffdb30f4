"""How a machine under qemu is told what to run, and how it answers. Pure.

Answers come over a port of their own (`virtio-serial`), not over the console: the kernel writes its messages into the
console at any moment, in the middle of a line too, and whatever a program prints ends up there. The port carries bytes
as they are, eight megabytes in about a second, and needs no module of the kernel. Over it go the marks `@@BEGIN` and
`@@EXIT code` of each command, with `@@LATE` between them for one that was killed at its limit, and, after `@@FILES`,
what lies in `/out` as a `newc` archive, which ends by itself: an answer that was cut off cannot be taken for a whole
one.
"""

import math
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
MARKS: Final = re.compile(rb"@@BEGIN\n(?P<late>@@LATE\n)?(?:@@EXIT (?P<code>\d{1,3})\n)?")
FILES: Final = b"@@FILES\n"
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
cd {OUT} && {SHELL} find . | {SHELL} cpio -o -H newc >&3
exec 3>&-
{SHELL} poweroff -f
"""
"""The first program. It has the kernel grant every allocation and end who uses too much, as Android does, so that it is
always the kernel that tells of too little memory. It ends the machine by itself after a while, so that none goes on
when nobody is left to stop it. A command's standard error goes to the console."""
COMMAND: Final = f"""\
echo @@BEGIN >&3
{SHELL} env -i LC_ALL=C.UTF-8 PATH=/bin @words@ </dev/null >{OUT}/@number@ 3>&- & r=$!
({SHELL} sleep @limit@; echo @@LATE >&3; kill -9 $r) & g=$!
wait $r; c=$?; kill $g; wait $g
echo @@EXIT $c >&3"""


@dataclass(frozen=True, kw_only=True)
class Answer:
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


def read_answer(data: bytes) -> Answer:
    """Read what came over the port, however much of it came. Raises `BadArchive` for what no machine of ours sends."""
    at, marks = 0, []
    while (found := MARKS.match(data, at)) is not None:
        marks.append(found)
        at = found.end()
    rest = data[at:]
    if not rest.startswith(FILES) and (len(rest) >= LONGEST_MARK or b"\n" in rest):
        raise BadArchive(f"there is no mark at byte {at}")
    codes = tuple(int(mark["code"]) for mark in marks if mark["code"])
    return Answer(
        begun=len(marks),
        late=sum(1 for mark in marks if mark["late"] and mark["code"] in {None, KILLED}),
        exit_codes=codes,
        files=_files(rest[len(FILES) :]) if rest.startswith(FILES) else None,
    )


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
