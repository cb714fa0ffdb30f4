"""What reaches a machine that is not this one: `adb`, `ssh`, or a shell in a test."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ortrim.tools.command import Completed


class Transport(Protocol):
    """A machine that takes files and runs commands, one after the other.

    Folders are absolute paths of the machine, written with slashes. Every method raises `VerifyError`: `device-lost`
    when the machine cannot be reached or goes away half way (with a reference of its own for what can be told apart,
    such as a device that refuses this user), `device-full` when it has no room for what it is sent.
    """

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Run a command on the machine to its end and return its exit code, stdout and stderr.

        `words` reach the program as they are: whoever goes through a shell quotes them. The exit code is the one that
        a shell gives, 128 plus the signal's number for a program that a signal ended. Raises `VerifyError`
        `device-timeout` when it does not end in time; it is then ended on the machine too.
        """

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        """Copy local files, by their names below `folder`, which is made with what folders the names need.

        What is there already under such a name is replaced. Permissions are not promised.
        """

    def pull(self, folder: str, destination: Path) -> None:
        """Copy everything below a folder of the machine into `destination`, a local folder that is there.

        No file lands outside `destination`, whatever the machine sends.
        """
