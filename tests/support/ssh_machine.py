"""A board that ssh reaches: an sshd on loopback with keys of its own, for this very user, without PAM."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from typing import Final

from adb_machine import until
from loopback_service import free_port
from ortrim.base.command import run
from program_files import write_program
from running import running

NAMESPACES: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
SCRIPT: Final = """
set -e
folder=$1; shift
mount -t tmpfs -o size=4m,mode=1777 none "$folder/small"
mount -t tmpfs -o noexec,mode=1777 none "$folder/locked"
mount -t proc none /proc
"$@" &
while :; do wait; sleep 0.2; done
"""
SERVER: Final = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
SetEnv PATH={folder}/shims:/usr/bin:/bin
"""
CLIENT: Final = """
Host board
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
Host stranger
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/host
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile /dev/null
"""


@dataclass(frozen=True, kw_only=True)
class SshMachine:
    """The running board: `configuration` has it as `board`; `shims` come first on its PATH."""

    folder: Path
    port: int
    process: int

    @property
    def configuration(self) -> Path:
        return self.folder / "config"

    @property
    def work(self) -> Path:
        """The folder that devices are to use as their base."""
        return self.folder / "work"

    def shim(self, name: str, script: str) -> None:
        """Put a program of the test's own in the place of one of the board's."""
        write_program(self.folder / "shims" / name, script)

    def cut(self) -> None:
        """End every connection there is, as a broken network does; the server goes on."""
        for number in self.processes():
            words = Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ")
            if words.startswith(b"sshd: ") and b"[listener]" not in words:
                os.kill(number, 9)

    def processes(self) -> list[int]:
        found, remaining = [], [self.process]
        while remaining:
            number = remaining.pop()
            try:
                remaining += map(int, Path(f"/proc/{number}/task/{number}/children").read_text().split())
                found.append(number)
            except OSError:
                continue
        return found

    def runs(self, word: str) -> bool:
        """Whether a process of this machine has `word` in its command line; orphans belong to the board no more."""
        return word in running()

    def wait_until_gone(self, word: str) -> None:
        """Wait for the last process with `word`; the board's own time limit ends it."""
        until(lambda: not self.runs(word), f"a process is left: {word}")


@contextmanager
def ssh_machine() -> Iterator[SshMachine]:
    folder = Path(tempfile.mkdtemp(prefix="ortrim-sshd-", dir="/tmp"))
    try:
        for name in ("work", "small", "locked", "shims", "mine"):
            (folder / name).mkdir(mode=0o755)
        port = free_port()
        _configure(folder, port)
        with _started(folder, port) as process:
            yield SshMachine(folder=folder, port=port, process=process)
    finally:
        shutil.rmtree(folder)


def _configure(folder: Path, port: int) -> None:
    for name in ("key", "host"):
        done = run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name))
        assert done.returncode == 0, done.stderr
    shutil.copy(folder / "key.pub", folder / "authorized")
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    values = {"folder": folder, "port": port, "user": getuser()}
    (folder / "sshd_config").write_text(SERVER.format(**values))
    (folder / "config").write_text(CLIENT.format(**values))


@contextmanager
def _started(folder: Path, port: int) -> Iterator[int]:
    server = (shutil.which("sshd") or "/usr/sbin/sshd", "-f", str(folder / "sshd_config"), "-D", "-e")
    root = os.geteuid() == 0
    if root:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # without it, root's sshd does not start
    words = (*NAMESPACES, "sh", "-c", SCRIPT, "sh", str(folder), *server) if root else server
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        until(lambda: _listens(port), f"sshd did not start: {(folder / 'log').read_text()}")
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
