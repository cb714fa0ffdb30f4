"""The `ssh` program of this machine, with one connection for all commands of a run.

The user's own configuration holds: names, users, keys, jumps, known hosts. ortrim adds only that nothing is asked
(BatchMode) and that a dead connection is noticed; it never weakens the check of host keys.
"""

import os
import re
import shlex
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.errors import Diagnostic, ToolError, UsageError
from ortrim.tools.base import install_command
from ortrim.tools.command import Completed, run
from ortrim.verify.devices.redirection import redirected
from ortrim.verify.devices.run_errors import MOST_PRINTED_BYTES
from ortrim.verify.devices.ssh_errors import ssh_error

OPTIONS: Final = (
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "LogLevel=ERROR",
    "ForwardAgent=no",
    "ForwardX11=no",
)
IDLE_SECONDS: Final = 120
"""After which the shared connection ends by itself, should ortrim be killed before it can end it."""
CONNECT_SECONDS: Final = 60.0
CLOSE_SECONDS: Final = 10.0
DESTINATION: Final = re.compile(r"(?!-)[^\s\x00-\x1f\x7f]{1,255}")
LONGEST_SOCKET: Final = 80
"""The kernel takes 107 characters, and ssh adds some while it makes the socket."""


class SshClient:
    """One machine, by a destination that `ssh` takes: `user@host`, a name of its configuration, `ssh://user@host:22`.

    `configuration` replaces the user's own file. Raises `UsageError` (`bad-destination`) or `ToolError`
    (`tool-missing`).
    """

    def __init__(self, destination: str, configuration: Path | None = None) -> None:
        self.destination = require_destination(destination)
        self._program = _find("ssh")
        self._configuration = ("-F", str(configuration)) if configuration else ()
        self._folder: Path | None = None

    def connect(self) -> None:
        """Open the shared connection. Raises `VerifyError`: why the machine cannot be reached."""
        folder = Path(tempfile.mkdtemp(prefix="ortrim-ssh-"))
        if len(str(folder)) > LONGEST_SOCKET:
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix="ortrim-ssh-", dir="/tmp"))
        self._folder = folder
        said = folder / "stderr"
        # Into a file: versions before 8.5 keep the pipe open in the background, and whoever reads it waits.
        master = ("-M", "-N", "-f", "-o", f"ControlPersist={IDLE_SECONDS}")
        words = (*self._words(), *master, "--", self.destination)
        done = run(redirected(words, complaints=said), environment=_environment(), timeout_seconds=CONNECT_SECONDS)
        if done.returncode != 0:
            error = ssh_error(said.read_text(errors="replace"), self.destination)
            self.close()
            raise error

    def script(
        self, script: str, seconds: float, *, given: Path | None = None, printed: Path | None = None
    ) -> Completed:
        """Run a script by the machine's `sh`, whatever the user's shell there.

        Its input is the file `given`, or empty; its output goes to the file `printed` instead of a string. Raises
        `ToolError` (`tool-timeout`, `tool-endless`, ...).
        """
        words = (*self._words(), "-T", "--", self.destination, f"exec sh -c {shlex.quote(script)}")
        command = redirected(words, given=given, printed=printed)
        return run(command, environment=_environment(), timeout_seconds=seconds, most_bytes=MOST_PRINTED_BYTES)

    def close(self) -> None:
        """End the shared connection; raises nothing."""
        if self._folder is None:
            return
        with suppress(Diagnostic):
            run((*self._words(), "-O", "exit", "--", self.destination), timeout_seconds=CLOSE_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def _words(self) -> tuple[str, ...]:
        shared = () if self._folder is None else (f"ControlPath={self._folder / 'control'}",)
        options = (word for option in (*OPTIONS, *shared) for word in ("-o", option))
        return (self._program, *self._configuration, *options)


def require_destination(destination: str) -> str:
    """Return a destination that `ssh` can be given. Raises `UsageError` (`bad-destination`)."""
    if not DESTINATION.fullmatch(destination):
        hint = "write user@host, or a name of ~/.ssh/config, or ssh://user@host:port"
        raise UsageError("bad-destination", "is not a destination for ssh", where=repr(destination), hint=hint)
    return destination


def _environment() -> dict[str, str]:
    # LC_ALL: what the system says inside ssh's messages is told apart by its words.
    return {**os.environ, "LC_ALL": "C"}


def _find(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        hint = f"run: {install_command('openssh-client')}"
        raise ToolError("tool-missing", "is not installed", where=name, hint=hint)
    return found
