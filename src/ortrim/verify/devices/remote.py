"""A machine behind a transport, whichever: each run has a folder of its own there, and its results are brought here."""

import dataclasses
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.measurements import Host
from ortrim.errors import VerifyError
from ortrim.storage.files import storage_errors
from ortrim.verify.devices.base import RunnerOutput, RunRequest, runner_words
from ortrim.verify.devices.base_folders import other_folder
from ortrim.verify.devices.payload import make_payload
from ortrim.verify.devices.pinning import pinned
from ortrim.verify.devices.pulled_files import copy_files, text_of
from ortrim.verify.devices.remote_folder import RemoteFolder, last_words
from ortrim.verify.devices.run_errors import NOT_STARTED, not_startable
from ortrim.verify.devices.shell_script import signalled
from ortrim.verify.devices.thermal import UNKNOWN_HEAT, Thermal
from ortrim.verify.devices.transport import Transport
from ortrim.verify.runner_output import never_ended, read_output

REPORT: Final = "report.json"
OUTPUTS: Final = "outputs"


@dataclass(frozen=True, kw_only=True)
class RemoteMachine:
    """What is known of a machine behind a transport before anything runs there.

    `base` is a folder that is there or can be made. `describe` asks the machine for its facts, with its present
    thermal state in `thermal_after`, and `thermal` for its heat alone. The runner is kept on `cores`, all of the
    machine's when there are none.
    """

    name: str
    transport: Transport
    base: str
    describe: Callable[[], Host]
    thermal: Callable[[], Thermal] = lambda: UNKNOWN_HEAT
    cores: tuple[int, ...] = ()
    time_meaningful: bool = True


class RemoteDevice:
    """Runs the runner on a machine behind a transport, in a folder of its own below the machine's base.

    The thermal state that the machine had before the first run is remembered. `before_run` is called before each run
    (until a phone has cooled down); it may raise `VerifyError`.
    """

    memory_meaningful = True

    def __init__(self, machine: RemoteMachine, before_run: Callable[[], None] = lambda: None) -> None:
        self.name = machine.name
        self.time_meaningful = machine.time_meaningful
        self._transport = machine.transport
        self._folder = RemoteFolder(machine.transport, base=machine.base, owner=machine.name)
        self._describe = machine.describe
        self._cores = machine.cores
        self._before_run = before_run
        self._first: Host | None = None
        self._runs = 0

    def facts(self) -> Host:
        """Describe the machine now. Raises what `describe` raises."""
        now = self._describe()
        self._first = self._first or now
        return dataclasses.replace(
            now,
            pinned_cores=self._cores,
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
        self._folder.open()
        self._runs += 1
        place = f"{self._folder.path}/run-{self._runs}"
        payload = make_payload(request, self._folder.files, f"{place}/{OUTPUTS}")
        try:
            self._folder.push(payload)
            self._before_run()
            return self._run(payload.request, request, place)
        finally:
            self._folder.remove(place)

    def close(self) -> None:
        """Remove our folder from the machine; one that has gone away keeps it until the next `ortrim` finds it."""
        self._folder.close()

    def _run(self, there: RunRequest, request: RunRequest, place: str) -> RunnerOutput:
        """Run with the machine's paths and report with ours."""
        self._folder.make(f"{place}/{OUTPUTS}")
        words = (*pinned(self._cores), *runner_words(there), "--json", f"{place}/{REPORT}")
        limit = request.repetition.timeout_seconds
        try:
            done = self._transport.execute(words, timeout_seconds=limit)
        except VerifyError as error:
            raise never_ended(request) if error.reference == "device-timeout" else error from error
        if done.returncode in NOT_STARTED:
            base = self._folder.path.rpartition("/")[0]
            besides = f"if {base} is mounted noexec, {other_folder(self.name)}"
            raise not_startable(self.name, last_words(done), besides)
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as temporary:
            self._transport.pull(place, Path(temporary))
            report = text_of(Path(temporary) / REPORT) or done.stdout
            if request.outputs:
                copy_files(Path(temporary) / OUTPUTS, request.outputs)
        returncode = signalled(done.returncode)
        return read_output(dataclasses.replace(done, returncode=returncode, stdout=report), request)
