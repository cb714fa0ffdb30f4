"""A machine that adb reaches: adbd in namespaces of its own (network, files, processes), and adb's server beside it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from android_root import android_root
from ortrim.base.command import Completed, run
from ortrim.base.tools import Program
from ortrim.devices.adb import find_adb
from program_files import write_program

DAEMON: Final = "/usr/lib/android-sdk/platform-tools/adbd"
PORTS: Final = (23401, 23402)
READY_SECONDS: Final = 30.0
SCRIPT: Final = r"""
set -e
root=$1; shims=$2; socket=$3; megabytes=$4; variables=$5; shift 5
if [ -e "$shims/../emulator" ]; then
  mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
  cat "$shims/../emulator" >/proc/sys/fs/binfmt_misc/register
  mkdir -p "$root/sys"  # as a phone has it; cpuinfo looks there
  mount --rbind /sys "$root/sys"
fi
mount -t tmpfs -o size=${megabytes}m none "$root/data/local/tmp"
mount -t tmpfs -o noexec,mode=1777 none "$root/locked"
mount -t tmpfs none "$root/shims"
cp "$shims"/* "$root/shims/"
mount -t proc none "$root/proc"
mount -t tmpfs none "$root/dev"
for name in null zero urandom random; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
chroot "$root" /usr/bin/toybox ifconfig lo 127.0.0.1 up
adb -L "localfilesystem:$socket" nodaemon server >"$shims/../server.log" 2>&1 &
start() {
  environment="ADBD_PORT=$1 PATH=/shims:/system/bin HOME=/ $variables"
  chroot "$root" /system/bin/env -i $environment DAEMON >"$shims/../$1.log" 2>&1 &
  echo $! > "$shims/../$1.pid"
}
revive() { for port in "$@"; do kill -0 $(cat "$shims/../$port.pid") 2>/dev/null || start $port; done; }
for port in "$@"; do start $port; done
set +e
trap 'revive "$@"' USR1
: > "$shims/../started"
# The first process reaps what others leave behind, as Android's init does.
while :; do wait; sleep 0.2; done
""".replace("DAEMON", DAEMON)


@dataclass(frozen=True, kw_only=True)
class AdbMachine:
    """The running machine: its client, the serial numbers of its devices, and its processes' root outside."""

    client: Program
    serials: tuple[str, ...]
    folder: Path
    root: Path
    init: int
    user_namespace: bool

    def shell(self, script: str, serial: str | None = None) -> Completed:
        return self.client.run("-s", serial or self.serials[0], "shell", script, timeout_seconds=20)

    def kill_daemon(self, index: int = 0) -> None:
        number = (self.folder / f"{PORTS[index]}.pid").read_text().strip()
        done = self.inside("kill", "-9", number)
        assert done.returncode == 0, done.stderr

    def stop_daemon(self, index: int = 0) -> None:
        """Let a device's adbd stand still, so that whatever comes next on the cable is under way until it is killed."""
        done = self.inside("kill", "-STOP", (self.folder / f"{PORTS[index]}.pid").read_text().strip())
        assert done.returncode == 0, done.stderr

    def revive_daemons(self) -> None:
        """Start every adbd that was killed, and connect, as plugging the cable in again does."""
        os.kill(self.init, signal.SIGUSR1)
        for serial in self.serials:
            until(lambda at=serial: _connects(self.client, at), "adbd does not come back")

    def inside(self, *words: str) -> Completed:
        """Run one of toybox's commands within the machine, with no help of adb."""
        user = ("--user", "--preserve-credentials") if self.user_namespace else ()
        enter = ("nsenter", "--target", str(self.init), *user, "--pid", "--mount")
        return run((*enter, "chroot", self.root, "/usr/bin/toybox", *words), timeout_seconds=20)

    def processes(self, word: str) -> list[str]:
        """Return the command lines within that have `word` in them."""
        lines = self.inside("ps", "-A", "-o", "STAT=,ARGS=").stdout.splitlines()
        return [line for line in lines if word in line and not line.startswith("Z")]

    def wait_until_gone(self, word: str) -> None:
        """Wait for the last process with `word`; the device's own time limit ends it."""
        until(lambda: not self.processes(word), f"a process is left: {word}")


def until(condition: object, complaint: str, seconds: float = READY_SECONDS) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(0.05)


@contextmanager
def adb_machine(
    shims: dict[str, str],
    *,
    devices: int = 1,
    megabytes: int = 192,
    root: Path | None = None,
    emulator: str = "",
    variables: str = "",
) -> Iterator[AdbMachine]:
    """Run a machine with some programs before its own on PATH.

    `root` is another folder than `android_root()`, `emulator` the line for binfmt_misc of what runs its programs, and
    `variables` are more words for `env`, for all that runs there.
    """
    folder = Path(tempfile.mkdtemp(prefix="ortrim-adb-", dir="/tmp"))
    try:
        programs = folder / "shims"
        programs.mkdir()
        for name, text in {"README": "programs of the test", **shims}.items():
            write_program(programs / name, text)
        if emulator:
            (folder / "emulator").write_text(emulator)
        # Only a user namespace has emulators of its own (Linux 6.7); the host's are nobody's to change.
        user_namespace = bool(emulator) or os.geteuid() != 0
        root = root or android_root()
        values = (root, programs, folder / "socket", megabytes, variables, *PORTS[:devices])
        with _started(folder, values, user_namespace=user_namespace) as init:
            client, serials = _connected(folder, devices)
            yield AdbMachine(
                client=client, serials=serials, folder=folder, root=root, init=init, user_namespace=user_namespace
            )
    finally:
        shutil.rmtree(folder)


@contextmanager
def _started(folder: Path, values: tuple[object, ...], *, user_namespace: bool) -> Iterator[int]:
    user = ("--user", "--map-root-user") if user_namespace else ()
    words = ("unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", SCRIPT, "sh")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*words, *map(str, values)], stdout=log, stderr=log, env=_environment(folder), start_new_session=True
        )
    try:
        until((folder / "started").exists, f"the machine did not start: {(folder / 'log').read_text()}")
        yield _child_of(process.pid)
    finally:
        process.kill()
        process.wait()


def _child_of(number: int) -> int:
    return int(Path(f"/proc/{number}/task/{number}/children").read_text().split()[0])


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment whose adb has a key and a server of its own."""
    path = f"/usr/sbin:/sbin:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(folder), "ADB_SERVER_SOCKET": f"localfilesystem:{folder / 'socket'}"}


def _connected(folder: Path, devices: int) -> tuple[Program, tuple[str, ...]]:
    until((folder / "socket").exists, "adb's server did not start")
    client = find_adb(_environment(folder))
    serials = tuple(f"127.0.0.1:{port}" for port in PORTS[:devices])
    for serial in serials:
        until(lambda at=serial: "connected to" in client.run("connect", at, timeout_seconds=20).stdout, "no adbd")
        until(lambda at=serial: _answers(client, at), "adbd does not answer")
    return client, serials


def _connects(client: Program, serial: str) -> bool:
    client.run("connect", serial, timeout_seconds=20)
    return _answers(client, serial)


def _answers(client: Program, serial: str) -> bool:
    return client.run("-s", serial, "shell", "true", timeout_seconds=20).returncode == 0
