"""A machine behind a transport, whichever: files go there once, each run has a folder, and nothing stays."""

import dataclasses
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.core.measurements import Host
from ortrim.errors import VerifyError
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.tools.command import Completed
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.payload import Payload, make_payload
from ortrim.verify.devices.transport import Transport
from ortrim.verify.runner_output import never_ended, read_output

COMMAND_SECONDS: Final = 120.0
"""How long a machine may take for a command of ours that is not the runner."""
PREFIX: Final = "ortrim-"
REPORT: Final = "report.json"
OUTPUTS: Final = "outputs"
STALE_DAYS: Final = "1"
NOT_STARTED: Final = (126, 127)
"""What a shell gives for a program that it cannot execute, or that (or whose loader) is not there."""


class RemoteDevice:
    """Runs the runner over a transport, in a folder of its own below `base`, which is there or can be made.

    `describe` asks the machine for its facts, with its present thermal state in `thermal_after`; the state that it
    had before the first run is remembered. `launcher` are words that go before the runner's (`taskset f0`), and
    `before_run` is called before each run (until a phone has cooled down); it may raise `VerifyError`.
    """

    def __init__(
        self,
        *,
        name: str,
        transport: Transport,
        base: str,
        describe: Callable[[], Host],
        launcher: tuple[str, ...] = (),
        before_run: Callable[[], None] = lambda: None,
        memory_meaningful: bool = True,
        time_meaningful: bool = True,
    ) -> None:
        self.name = name
        self.memory_meaningful = memory_meaningful
        self.time_meaningful = time_meaningful
        self.folder = f"{base.rstrip('/')}/{PREFIX}{secrets.token_hex(8)}"
        self._transport = transport
        self._describe = describe
        self._launcher = launcher
        self._before_run = before_run
        self._there: set[str] = set()
        self._first: Host | None = None
        self._runs = 0

    def facts(self) -> Host:
        """Describe the machine now. Raises what `describe` raises."""
        now = self._describe()
        self._first = self._first or now
        return dataclasses.replace(
            now,
            thermal_before=self._first.thermal_after,
            memory_meaningful=self.memory_meaningful,
            time_meaningful=self.time_meaningful,
        )

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once.

        Raises `VerifyError`: what the transport raises, `push-incomplete`, `runner-timeout`, and those of
        `read_output`; `StorageError` when files of this machine cannot be read or written.
        """
        self._first = self._first or self._describe()
        if not self._runs:
            self._open()
        self._runs += 1
        place = f"{self.folder}/run-{self._runs}"
        payload = make_payload(request, f"{self.folder}/files", f"{place}/{OUTPUTS}")
        try:
            self._push(payload)
            self._before_run()
            return self._run(payload.request, request, place)
        finally:
            with suppress(VerifyError):
                self._command("rm", "-rf", place)

    def close(self) -> None:
        """Remove our folder from the machine; one that has gone away keeps it until the next `ortrim` finds it."""
        if self._runs:
            with suppress(VerifyError):
                self._command("rm", "-rf", self.folder)
        self._there.clear()

    def _open(self) -> None:
        """Make our folder, and remove those of processes that were killed."""
        base = self.folder.rpartition("/")[0]
        self._required("mkdir", "-p", self.folder)
        with suppress(VerifyError):
            age = ("-maxdepth", "1", "-name", f"{PREFIX}*", "-mtime", f"+{STALE_DAYS}")
            self._command("find", base, *age, "-exec", "rm", "-rf", "{}", "+")

    def _push(self, payload: Payload) -> None:
        """Push what is not there yet, and believe only what the machine itself says of the contents."""
        missing = {name: path for name, path in payload.files.items() if name not in self._there}
        if not missing:
            return
        folder = f"{self.folder}/files"
        self._transport.push(missing, folder)
        self._check(missing, folder)
        if payload.executable in missing:
            self._required("chmod", "755", str(payload.request.runner))
        self._there.update(missing)

    def _check(self, files: Mapping[str, Path], folder: str) -> None:
        done = self._command("sha256sum", *(f"{folder}/{name}" for name in files))
        # A name with a backslash or a line end is written in another way, and its line begins with a backslash.
        found = [line.lstrip("\\").split(" ")[0] for line in done.stdout.splitlines()]
        if done.returncode != 0 or found != [sha256_of(path) for path in files.values()]:
            what = "what arrived is not what was sent"
            hint = f"make room below {folder.rpartition('/')[0]} and see that it can be written"
            raise VerifyError("push-incomplete", what, where=self.name, why=_tail(done), hint=hint)

    def _run(self, there: RunRequest, request: RunRequest, place: str) -> RunnerOutput:
        """Run with the machine's paths and report with ours."""
        self._required("mkdir", "-p", f"{place}/{OUTPUTS}")
        words = (*self._launcher, *runner_words(there), "--json", f"{place}/{REPORT}")
        limit = request.repetition.timeout_seconds
        try:
            done = self._transport.execute(words, timeout_seconds=limit)
        except VerifyError as error:
            raise never_ended(request) if error.reference == "device-timeout" else error from error
        if done.returncode in NOT_STARTED:
            raise _not_startable(self.name, self.folder, done)
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as temporary:
            self._transport.pull(place, Path(temporary))
            report = _text(Path(temporary) / REPORT) or done.stdout
            if request.outputs:
                copy_files(Path(temporary) / OUTPUTS, request.outputs)
        returncode = signalled(done.returncode)
        return read_output(dataclasses.replace(done, returncode=returncode, stdout=report), request)

    def _command(self, *words: str) -> Completed:
        return self._transport.execute(words, timeout_seconds=COMMAND_SECONDS)

    def _required(self, *words: str) -> None:
        done = self._command(*words)
        if done.returncode != 0:
            what = f"'{words[0]}' failed with {done.returncode}"
            raise VerifyError("device-unusable", what, where=self.name, why=_tail(done))


def signalled(returncode: int) -> int:
    """Return a shell's exit code as `Completed` has it: negative for a program that a signal ended."""
    return 128 - returncode if 128 < returncode <= 128 + 64 else returncode


def copy_files(source: Path, destination: Path) -> None:
    """Copy the regular files below a folder; links, which a machine may have sent, are not followed."""
    with storage_errors(destination):
        for path in sorted(source.rglob("*")):
            if path.is_file() and not path.is_symlink():
                target = destination / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def _text(path: Path) -> str:
    regular = path.is_file() and not path.is_symlink()
    return path.read_text(encoding="utf-8", errors="replace") if regular else ""


def _tail(done: Completed) -> str:
    return "\n".join(done.stderr.strip().splitlines()[-5:])


def _not_startable(name: str, folder: str, done: Completed) -> VerifyError:
    what = "the machine cannot start the runner"
    hint = f"build for this machine's processor and C library; {folder.rpartition('/')[0]} must not be mounted noexec"
    return VerifyError("runner-not-startable", what, where=name, why=_tail(done), hint=hint)
