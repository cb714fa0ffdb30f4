"""Boards that OpenSSH reaches: a Raspberry Pi, a server, a virtual machine."""

import shutil
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.errors import StorageError
from ortrim.storage.files import storage_errors
from ortrim.storage.unpack import unpack
from ortrim.tools.command import Completed
from ortrim.verify.devices.base_folders import base_folder
from ortrim.verify.devices.cooling import CooledDevice
from ortrim.verify.devices.marked_run import run_marked
from ortrim.verify.devices.questions import Questions, asked_machine
from ortrim.verify.devices.redirection import cut_tail
from ortrim.verify.devices.remote import RemoteMachine
from ortrim.verify.devices.ssh_client import SshClient
from ortrim.verify.devices.ssh_errors import copy_error, ssh_error
from ortrim.verify.devices.ssh_facts import SURVEY, THERMAL_SURVEY, ssh_host, ssh_thermal
from ortrim.verify.devices.survey import maybe_emulated, read_sections

BASE: Final = "/var/tmp"  # noqa: S108 - our folder below it has a name that nobody can guess
"""On a disk where there is one, while /tmp is often memory, which would be missing from what is measured."""
COPY_SECONDS: Final = 1800.0
EXTRACT: Final = 'mkdir -p "$1" && exec tar -x -m -o -f - -C "$1"'
"""`-m` for boards without a clock, `-o` so that files belong to who unpacks them; BusyBox and toybox know both."""
QUESTIONS: Final = Questions(
    facts=SURVEY,
    read_facts=ssh_host,
    heat=THERMAL_SURVEY,
    read_heat=ssh_thermal,
    keeps_time=lambda answer: not maybe_emulated(read_sections(answer)),
)


class SshTransport:
    """A machine by a connected client. Files travel as tar: boards often have no SFTP server, and all have tar."""

    def __init__(self, client: SshClient) -> None:
        self._client = client

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        """Run a command, as `Transport` promises. Raises `VerifyError`, or `ToolError` when ssh itself is gone."""
        return self._run(words, timeout_seconds)

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        """Copy files to the machine in one archive."""
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as temporary:
            archive = Path(temporary) / "push.tar"
            write_archive(archive, files)
            done = self._run(("sh", "-c", EXTRACT, "sh", folder), COPY_SECONDS, given=archive)
        if done.returncode != 0:
            raise copy_error(done.stderr, self._client.destination)

    def pull(self, folder: str, destination: Path) -> None:
        """Copy a folder's content; names that lead outside, links out and devices are refused (`unsafe-archive`)."""
        with storage_errors(destination), tempfile.TemporaryDirectory(prefix="ortrim-") as temporary:
            archive = Path(temporary) / "pull.tar"
            done = self._run(("tar", "-c", "-f", "-", "-C", folder, "."), COPY_SECONDS, printed=archive)
            if done.returncode != 0:
                raise copy_error(done.stderr, self._client.destination)
            _unpack_into(archive, destination)

    def _run(
        self, words: Sequence[str], seconds: float, *, given: Path | None = None, printed: Path | None = None
    ) -> Completed:
        def start(script: str, limit: float) -> Completed:
            done = self._client.script(script, limit, given=given, printed=printed)
            return cut_tail(printed, b"\n@@", done) if printed else done

        destination = self._client.destination
        explain = partial(ssh_error, destination=destination)
        return run_marked(words, start, limit_seconds=seconds, name=f"ssh:{destination}", explain=explain)


def write_archive(archive: Path, files: Mapping[str, Path]) -> None:
    """Write files under other names into a tar that every unpacker reads. Raises `StorageError`."""
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
        if error.reference != "nothing-unpacked":
            raise
        return
    for path in content.iterdir():
        shutil.move(path, destination / path.name)


class SshDevice(CooledDevice):
    """A board with the connection that it was opened with."""

    def __init__(self, machine: RemoteMachine, client: SshClient, announce: Callable[[str], None]) -> None:
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

    `base` is the folder below which ours is made, without one that of `base_folder`.
    `announce` is told when it waits for the board to cool down. Raises `UsageError` `bad-folder`, and what `SshClient`
    and `asked_machine` raise.
    """
    base = base or base_folder("ssh", BASE)
    client = SshClient(destination, configuration)
    client.connect()
    try:
        name = f"ssh:{client.destination}"
        machine = asked_machine(SshTransport(client), QUESTIONS, name=name, base=base, cores=cores)
        return SshDevice(machine, client, announce)
    except BaseException:
        client.close()
        raise
