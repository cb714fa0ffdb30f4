"""Our own folder on another machine: files go there once, and are checked there; nothing of it stays."""

import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.errors import VerifyError
from ortrim.storage.files import sha256_of
from ortrim.tools.command import Completed
from ortrim.verify.devices.base_folders import other_folder
from ortrim.verify.devices.payload import Payload
from ortrim.verify.devices.transport import Transport

COMMAND_SECONDS: Final = 120.0
"""How long a machine may take for a command of ours that is not the runner."""
PREFIX: Final = "ortrim-"
STALE_DAYS: Final = "1"


class RemoteFolder:
    """A folder below `base`, which is there or can be made, under a name that nobody else has.

    `owner` is the machine's name in diagnostics. What the transport raises comes through everywhere but from `remove`.
    """

    def __init__(self, transport: Transport, *, base: str, owner: str) -> None:
        self.path = f"{base.rstrip('/')}/{PREFIX}{secrets.token_hex(8)}"
        self.files = f"{self.path}/files"
        self._transport = transport
        self._owner = owner
        self._there: set[str] = set()
        self._begun = False

    def open(self) -> None:
        """Make the folder, and remove those of processes that were killed; nothing when files are in it already.

        Raises `VerifyError` `device-unusable`.
        """
        if self._there:
            return
        self._begun = True
        base = self.path.rpartition("/")[0]
        self.make(self.path)
        with suppress(VerifyError):
            age = ("-maxdepth", "1", "-name", f"{PREFIX}*", "-mtime", f"+{STALE_DAYS}")
            self._command("find", base, *age, "-exec", "rm", "-rf", "{}", "+")

    def make(self, folder: str) -> None:
        """Make a folder with those that it lies in. Raises `VerifyError` `device-unusable`."""
        self._required("mkdir", "-p", folder)

    def remove(self, folder: str) -> None:
        """Remove a folder of ours; a machine that has gone away keeps it until the next `ortrim` finds it."""
        with suppress(VerifyError):
            self._command("rm", "-rf", folder)

    def close(self) -> None:
        """Remove all that is ours, also when it was begun alone."""
        if self._begun:
            self.remove(self.path)
        self._there.clear()

    def push(self, payload: Payload) -> None:
        """Push what is not there yet, and believe only what the machine itself says of the contents.

        Raises `VerifyError`: `push-incomplete`, `device-unusable`; `StorageError` for files that cannot be read.
        """
        missing = {name: path for name, path in payload.files.items() if name not in self._there}
        if not missing:
            return
        self._transport.push(missing, self.files)
        self._check(missing)
        if payload.executable in missing:
            self._required("chmod", "755", str(payload.request.runner))
        self._there.update(missing)

    def _check(self, files: Mapping[str, Path]) -> None:
        done = self._command("sha256sum", *(f"{self.files}/{name}" for name in files))
        # A name with a backslash or a line end is written in another way, and its line begins with a backslash.
        found = [line.lstrip("\\").split(" ")[0] for line in done.stdout.splitlines()]
        if done.returncode != 0 or found != [sha256_of(path) for path in files.values()]:
            what = "what arrived is not what was sent"
            hint = f"make room below {self.path} and see that it can be written"
            raise VerifyError("push-incomplete", what, where=self._owner, why=last_words(done), hint=hint)

    def _command(self, *words: str) -> Completed:
        return self._transport.execute(words, timeout_seconds=COMMAND_SECONDS)

    def _required(self, *words: str) -> None:
        done = self._command(*words)
        if done.returncode != 0:
            what = f"'{words[0]}' failed with {done.returncode}"
            hint = other_folder(self._owner)
            raise VerifyError("device-unusable", what, where=self._owner, why=last_words(done), hint=hint)


def last_words(done: Completed) -> str:
    """Return the end of what a command complained of."""
    return "\n".join(done.stderr.strip().splitlines()[-5:])
