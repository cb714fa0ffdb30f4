"""Boards that OpenSSH reaches, with one connection for all commands: a Raspberry Pi, a server, a virtual machine."""

import dataclasses
import re
import shlex
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.base.archives import unpack
from ortrim.base.command import Completed, last_lines, run
from ortrim.base.files import storage_errors
from ortrim.base.tools import MOST_PRINTED_BYTES, Cause, Tool, causes, diagnose, install_command, with_plain_words
from ortrim.devices import kinds, remote
from ortrim.devices.facts import SURVEY, THERMAL_SURVEY, maybe_emulated, read_sections, ssh_host, ssh_thermal
from ortrim.errors import Diagnostic, StorageError, ToolError, UsageError, VerifyError

TOOL: Final = Tool(name="ssh", package="openssh-client", version_words=("-V",))
LOST, COPY_FAILED = causes("ssh-otherwise")
"""What a connection that breaks means, and a copy that fails while it holds."""


def ssh_error(printed: str, destination: str, otherwise: Cause = LOST) -> Diagnostic:
    """Return the diagnostic of an ssh command that failed, by what it printed, `otherwise` when nothing fits."""
    where, why = f"{kinds.SSH}:{destination}", last_lines(printed, 4)
    names = {"destination": destination, "folder": remote.other_folder(where)}
    known = diagnose(printed, causes("ssh"), where, why, kind=VerifyError, **names)
    return known or otherwise.diagnostic(where, why, VerifyError, **names)


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

    `configuration` replaces the user's own file.
    """

    def __init__(self, destination: str, configuration: Path | None = None) -> None:
        self.destination = require_destination(destination)
        found = shutil.which(TOOL.name)
        if found is None:
            hint = f"run: {install_command(TOOL.package)}"
            raise ToolError("tool-missing", "is not installed", where=TOOL.name, hint=hint)
        self._program = found
        self._configuration = ("-F", str(configuration)) if configuration else ()
        self._folder: Path | None = None

    def connect(self) -> None:
        """Open the shared connection."""
        folder = Path(tempfile.mkdtemp(prefix="ortrim-ssh-"))
        if len(str(folder)) > LONGEST_SOCKET:
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix="ortrim-ssh-", dir="/tmp"))
        self._folder = folder
        said = folder / "stderr"
        # Into a file: versions before 8.5 keep the pipe open in the background, and whoever reads it waits.
        master = ("-M", "-N", "-f", "-o", f"ControlPersist={IDLE_SECONDS}")
        words = (*self._words(), *master, "--", self.destination)
        done = run(redirected(words, complaints=said), environment=with_plain_words(), timeout_seconds=CONNECT_SECONDS)
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
        return run(command, environment=with_plain_words(), timeout_seconds=seconds, most_bytes=MOST_PRINTED_BYTES)

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


WITH_PORT: Final = re.compile(r"(?:[^@:/]+@)?(?:[^@:/\[\]]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")


def ssh_destination(detail: str) -> str:
    """Return what `ssh` takes for `user@host:port`; what is without a port it takes as it is."""
    return require_destination(f"ssh://{detail}" if WITH_PORT.fullmatch(detail) else detail)


def require_destination(destination: str) -> str:
    """Return a destination that `ssh` can be given."""
    if not DESTINATION.fullmatch(destination):
        hint = "write user@host, or a name of ~/.ssh/config, or ssh://user@host:port"
        raise UsageError("bad-destination", "is not an ssh destination", where=repr(destination), hint=hint)
    return destination


BASE: Final = "/var/tmp"  # noqa: S108 - our folder below it has a name that nobody can guess
"""On a disk where there is one, while /tmp is often memory, which would be missing from what is measured."""
COPY_SECONDS: Final = 1800.0
EXTRACT: Final = 'mkdir -p "$1" && exec tar -x -m -o -f - -C "$1"'
"""`-m` for boards without a clock, `-o` so that files belong to who unpacks them; BusyBox and toybox know both."""
PROBES: Final = remote.Probes(
    facts=SURVEY,
    read_facts=ssh_host,
    heat=THERMAL_SURVEY,
    read_heat=ssh_thermal,
    keeps_time=lambda answer: not maybe_emulated(read_sections(answer)),
)


def redirected(
    words: Sequence[str], *, given: Path | None = None, printed: Path | None = None, complaints: Path | None = None
) -> tuple[str, ...]:
    """Return the command line that runs `words` with these files as standard input, output and error.

    The shell's text is made of fixed parts alone; paths and words reach it as arguments.
    """
    files = [(sign, path) for sign, path in (("<", given), (">", printed), ("2>", complaints)) if path is not None]
    if not files:
        return tuple(words)
    take = "".join(f"f{index}=$1; shift; " for index in range(len(files)))
    script = f'{take}exec "$@" ' + " ".join(f'{sign}"$f{index}"' for index, (sign, _) in enumerate(files))
    return ("/bin/sh", "-c", script, "sh", *(str(path) for _, path in files), *words)


def cut_tail(path: Path, start: bytes, completed: Completed) -> Completed:
    """Move what a file has from the last `start` on, within its last 200 bytes, to a program's `stdout`."""
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        begin = max(0, size - 200)
        file.seek(begin)
        tail = file.read()
        at = tail.rfind(start)
        if at < 0:
            return completed
        file.truncate(begin + at)
    return dataclasses.replace(completed, stdout=tail[at:].decode("utf-8", errors="replace"))


class SshTransport:
    """A machine by a connected client. Files travel as tar: boards often have no SFTP server, and all have tar."""

    def __init__(self, client: SshClient) -> None:
        self._client = client

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Run a command, as `Transport` promises."""
        return self._run(words, timeout_seconds)

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        """Copy files to the machine in one archive."""
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as temporary:
            archive = Path(temporary) / "push.tar"
            write_archive(archive, files)
            done = self._run(("sh", "-c", EXTRACT, "sh", folder), COPY_SECONDS, given=archive)
        if done.returncode != 0:
            raise ssh_error(done.stderr, self._client.destination, COPY_FAILED)

    def pull(self, folder: str, destination: Path) -> None:
        """Copy a folder's content; names that lead outside, links out and devices are refused (`unsafe-archive`)."""
        with storage_errors(destination), tempfile.TemporaryDirectory(prefix="ortrim-") as temporary:
            archive = Path(temporary) / "pull.tar"
            done = self._run(("tar", "-c", "-f", "-", "-C", folder, "."), COPY_SECONDS, printed=archive)
            if done.returncode != 0:
                raise ssh_error(done.stderr, self._client.destination, COPY_FAILED)
            _unpack_into(archive, destination)

    def _run(
        self, words: Sequence[str], seconds: float, *, given: Path | None = None, printed: Path | None = None
    ) -> Completed:
        def start(script: str, limit: float) -> Completed:
            done = self._client.script(script, limit, given=given, printed=printed)
            return cut_tail(printed, b"\n@@", done) if printed else done

        destination = self._client.destination
        explain = partial(ssh_error, destination=destination)
        return remote.run_marked(
            words, start, limit_seconds=seconds, name=f"{kinds.SSH}:{destination}", explain=explain
        )


def write_archive(archive: Path, files: Mapping[str, Path]) -> None:
    """Write files under other names into a tar that every unpacker reads."""
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as tar:
        for name, path in sorted(files.items()):
            with storage_errors(path), path.open("rb") as content:
                info = tarfile.TarInfo(name)
                info.size, info.mode = path.stat().st_size, 0o644
                tar.addfile(info, content)


def _unpack_into(archive: Path, destination: Path) -> None:
    """Unpack an archive that may hold no file at all into a folder that stays whatever happens."""
    content = archive.with_name("content")
    try:
        unpack(archive, content)
    except StorageError as error:
        if error.code != "nothing-unpacked":
            raise
        return
    for path in content.iterdir():
        shutil.move(path, destination / path.name)


class SshDevice(remote.CooledDevice):
    """A board with the connection that it was opened with."""

    def __init__(self, machine: remote.RemoteMachine, client: SshClient, announce: Callable[[str], None]) -> None:
        super().__init__(machine, announce)
        self.client = client

    def close(self) -> None:
        """Remove our folder from the board and end the connection."""
        super().close()
        self.client.close()


def open_ssh(
    destination: str,
    *,
    configuration: Path | None = None,
    base: str = "",
    cores: tuple[int, ...] = (),
    announce: Callable[[str], None] = lambda _: None,
) -> SshDevice:
    """Return the board at a destination of `ssh`, connected, ready to run on `cores` (all, when empty).

    `base` is the folder below which ours is made, without one that of `base_folder`. Waiting for the board to cool down
    is reported to `announce`.
    """
    base = base or remote.base_folder(kinds.SSH.name, BASE)
    client = SshClient(destination, configuration)
    client.connect()
    try:
        name = f"{kinds.SSH}:{client.destination}"
        machine = remote.probed_machine(SshTransport(client), PROBES, name=name, base=base, cores=cores)
        return SshDevice(machine, client, announce)
    except BaseException:
        client.close()
        raise
