import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from device_samples import GOOD, MACHINE, REPORT, LocalTransport, sample_request
from failing_runs import run_refused
from ortrim.base.command import Completed, run
from ortrim.devices import remote
from ortrim.devices.adb import known_error
from ortrim.devices.device import check_pinning
from ortrim.devices.facts import Thermal
from ortrim.devices.ssh import ssh_error
from ortrim.errors import ExitCode, StorageError, UsageError, VerifyError
from ortrim.parity.measurements import HostFacts
from refusing import refused


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "machine").mkdir()
    return tmp_path / "machine"


def machine_in(folder: Path, transport: LocalTransport | None = None) -> remote.RemoteMachine:
    return remote.RemoteMachine(
        name="local:1",
        transport=transport or LocalTransport(),
        base=str(folder / "tmp"),
        describe=lambda: MACHINE,
    )


def device_on(machine: Path, transport: LocalTransport | None = None) -> remote.RemoteDevice:
    return remote.RemoteDevice(machine_in(machine, transport))


def left(machine: Path) -> list[str]:
    return sorted(path.relative_to(machine / "tmp").as_posix() for path in (machine / "tmp").rglob("*"))


def test_cores_and_preparation(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner is kept on the chosen cores, and what has to happen before a run happens before each."""
    transport = LocalTransport()
    calls: list[str] = []
    core = min(os.sched_getaffinity(0))
    on_one = dataclasses.replace(machine_in(machine, transport), cores=(core,))
    device = remote.RemoteDevice(on_one)
    monkeypatch.setattr(device, "before_run", lambda: calls.append("cool"))
    device.run(sample_request(tmp_path))
    device.run(sample_request(tmp_path))
    started = [words for words in transport.commands if "--library" in words]
    assert [words[:2] for words in started] == [("taskset", f"{1 << core:x}")] * 2
    assert device.facts().pinned_cores == (core,)
    assert calls == ["cool", "cool"]


class BrokenTransport(LocalTransport):
    """A machine that goes away at the `at`-th thing asked of it after `arm`."""

    def __init__(self, reference: str) -> None:
        super().__init__()
        self.reference = reference
        self.gone_for: Callable[[str], bool] = lambda _: False

    def _check(self, what: str) -> None:
        if self.gone_for(what):
            raise VerifyError(self.reference, "went away", where="local:1")

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        self._check("rm" if words[0] == "rm" else "run" if "--library" in words else "execute")
        return super().execute(words, timeout_seconds=timeout_seconds)

    def push(self, files: Mapping[str, Path], folder: str) -> None:
        self._check("push")
        super().push(files, folder)

    def pull(self, folder: str, destination: Path) -> None:
        self._check("pull")
        super().pull(folder, destination)


@pytest.mark.parametrize("step", ["push", "run", "pull", "execute"])
@pytest.mark.parametrize("reference", ["device-lost", "device-full"])
def test_a_machine_that_goes_away(machine: Path, tmp_path: Path, step: str, reference: str) -> None:
    """Wherever it goes away, the transport's own diagnostic comes through, and nothing stays once it is back."""
    transport = BrokenTransport(reference)
    device = device_on(machine, transport)
    request = sample_request(tmp_path)
    transport.gone_for = lambda what: what == step
    assert run_refused(device, request).code == reference
    transport.gone_for = lambda _: False
    device.close()
    assert not (machine / "tmp").exists() or left(machine) == []


def test_a_lost_machine_cannot_be_cleaned(machine: Path, tmp_path: Path) -> None:
    transport = BrokenTransport("device-lost")
    device = device_on(machine, transport)
    transport.gone_for = lambda what: what in {"run", "rm"}
    assert run_refused(device, sample_request(tmp_path)).what == "went away"
    device.close()


def test_links_from_the_machine_are_not_followed(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    script = f'mkdir "$outputs/only"; ln -s {tmp_path}/secret "$outputs/only/output_000.npy"; outputs=\n{GOOD}'
    request = dataclasses.replace(sample_request(tmp_path, script), outputs=tmp_path / "outputs")
    device_on(machine).run(request)
    assert not list((tmp_path / "outputs").rglob("*.npy"))


def test_a_report_that_is_a_link_is_not_read(machine: Path, tmp_path: Path) -> None:
    """The machine cannot have a file of this one shown as its report."""
    (tmp_path / "report").write_text(REPORT)
    script = f'ln -s {tmp_path}/report "$json"'
    assert run_refused(device_on(machine), sample_request(tmp_path, script)).code == "runner-garbage"


def test_heat_is_reported_before_and_after(machine: Path, tmp_path: Path) -> None:
    """The state before the first run is kept; facts also say what means something there."""
    states = iter([1, 2, 3])
    hot = dataclasses.replace(
        machine_in(machine),
        describe=lambda: dataclasses.replace(MACHINE, thermal_after=next(states)),
        time_meaningful=False,
    )
    device = remote.RemoteDevice(hot)
    device.run(sample_request(tmp_path))
    first, second = device.facts(), device.facts()
    assert (first.thermal_before, first.thermal_after) == (1, 2)
    assert (second.thermal_before, second.thermal_after) == (1, 3)
    assert (first.memory_meaningful, first.time_meaningful) == (True, False)
    assert isinstance(first, HostFacts)


def test_devices_side_by_side_do_not_meet(machine: Path, tmp_path: Path) -> None:
    one, two = device_on(machine), device_on(machine)
    one.run(sample_request(tmp_path))
    two.run(sample_request(tmp_path))
    one.close()
    two.run(sample_request(tmp_path))
    two.close()
    assert left(machine) == []


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Give the place on the machine below which folders are made; it is not there yet."""
    return tmp_path / "machine" / "tmp"


def folder_below(base: Path, transport: LocalTransport | None = None) -> remote.RemoteFolder:
    return remote.RemoteFolder(transport or LocalTransport(), base=f"{base}/", owner="local:1")


def payload_for(folder: remote.RemoteFolder, place: Path) -> remote.Payload:
    return remote.make_payload(sample_request(place), folder.files, f"{folder.path}/outputs")


def test_a_push_is_not_believed(base: Path, tmp_path: Path) -> None:
    """What arrives cut short is noticed by its digest, and is sent again by the next run."""

    class Cutting(LocalTransport):
        def push(self, files: Mapping[str, Path], folder: str) -> None:
            super().push(files, folder)
            next(Path(folder).rglob("library.so")).write_bytes(b"the lib")

    transport = Cutting()
    folder = folder_below(base, transport)
    payload = payload_for(folder, tmp_path)
    assert refused(VerifyError, folder.push, payload).code == "push-incomplete"
    assert refused(VerifyError, folder.push, payload).code == "push-incomplete"
    assert len(transport.pushed) == 8


def test_files_that_did_not_arrive(base: Path, tmp_path: Path) -> None:
    """A push that claims success and sends nothing is noticed, in the words of the machine."""

    class Silent(LocalTransport):
        def push(self, files: Mapping[str, Path], folder: str) -> None:
            pass

    folder = folder_below(base, Silent())
    error = refused(VerifyError, folder.push, payload_for(folder, tmp_path))
    assert error.code == "push-incomplete"
    assert "No such file" in error.why


class Shell(LocalTransport):
    """A machine whose shell finds these programs alone."""

    def __init__(self, folder: Path, programs: Sequence[str]) -> None:
        super().__init__()
        folder.mkdir()
        for program in programs:
            found = shutil.which(program)
            assert found
            (folder / program).symlink_to(found)
        self._path = folder

    def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
        def start(script: str, seconds: float) -> Completed:
            self.commands.append(tuple(words))
            shell = shutil.which("sh")
            assert shell
            return run((shell, "-c", script), environment={"PATH": str(self._path)}, timeout_seconds=seconds)

        return remote.run_marked(words, start, limit_seconds=timeout_seconds, name="local:1", explain=self._lost)

    @staticmethod
    def _lost(printed: str) -> VerifyError:
        return VerifyError("device-lost", printed)


NEEDED = ("chmod", "mkdir", "rm", "sleep")


def test_a_machine_without_a_program_for_checksums(base: Path, tmp_path: Path) -> None:
    """It is said what is missing; more room would not help."""
    folder = folder_below(base, Shell(tmp_path / "programs", NEEDED))
    error = refused(VerifyError, folder.push, payload_for(folder, tmp_path))
    assert (error.code, "none of sha256sum, sha1sum, md5sum" in error.what) == ("device-unusable", True)
    assert "not found" in error.why
    assert "space" not in error.hint


def test_names_that_are_written_in_another_way(base: Path, tmp_path: Path) -> None:
    """A file with a backslash in its name arrives like any other."""
    request = sample_request(tmp_path)
    (request.cases[0].folder / "in\\put.npy").write_bytes(b"x")
    folder = folder_below(base)
    folder.push(remote.make_payload(request, folder.files, "/outputs"))
    assert len(list(Path(folder.files).rglob("in\\put.npy"))) == 1


def test_a_folder_that_cannot_be_made(base: Path) -> None:
    """A base that is a file is of no use, and it is said why."""
    base.parent.mkdir()
    base.write_text("a file")
    error = refused(VerifyError, folder_below(base).open)
    assert (error.code, error.what) == ("device-unusable", "'mkdir' failed with 1")
    assert "tmp" in error.why


def test_an_opening_that_is_interrupted_leaves_nothing(base: Path) -> None:
    """Ctrl-C right after the folder was made does not leave it behind."""

    class Interrupted(LocalTransport):
        def execute(self, words: Sequence[str], *, timeout_seconds: float) -> Completed:
            done = super().execute(words, timeout_seconds=timeout_seconds)
            if words[0] == "mkdir":
                raise KeyboardInterrupt
            return done

    folder = folder_below(base, Interrupted())
    with pytest.raises(KeyboardInterrupt):
        folder.open()
    assert Path(folder.path).is_dir()
    folder.close()
    assert list(base.iterdir()) == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "key").write_text("secret")
    (tmp_path / "from").mkdir()
    for name, target in {"file": "secrets/key", "folder": "secrets", "nothing": "absent"}.items():
        (tmp_path / "from" / name).symlink_to(tmp_path / target)
    remote.copy_files(tmp_path / "from", tmp_path / "to")
    assert not list((tmp_path / "to").rglob("*"))
    assert [remote.text_of(tmp_path / "from" / name) for name in ("file", "folder", "nothing")] == ["", "", ""]


def test_a_destination_that_cannot_be_written(tmp_path: Path) -> None:
    """A file in the place of a folder is a diagnostic."""
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "x").write_bytes(b"x")
    (tmp_path / "to").write_text("a file")
    assert refused(StorageError, remote.copy_files, tmp_path / "from", tmp_path / "to").exit_code == ExitCode.STORAGE


def described(answer: str) -> HostFacts:
    return replace(MACHINE, model=answer.strip())


PROBES = remote.Probes(
    facts="echo 'a board'",
    read_facts=described,
    heat="echo 3",
    read_heat=lambda answer: Thermal(status=int(answer), battery_celsius=None),
    keeps_time=lambda answer: answer.strip() == "a board",
)
asked = partial(remote.probed_machine, name="local:1", base="/base", cores=())


def test_what_is_known_of_a_machine_comes_from_its_answers() -> None:
    """Its facts and its heat are asked for whenever they are wanted, whether its times count at once and once."""
    transport = LocalTransport()
    machine = asked(transport, PROBES)
    assert transport.commands == [("sh", "-c", "echo 'a board'")]
    assert (machine.name, machine.base, machine.cores, machine.time_meaningful) == ("local:1", "/base", (), True)
    assert (machine.describe().model, machine.thermal().status) == ("a board", 3)
    assert [words[2] for words in transport.commands[1:]] == ["echo 'a board'", "echo 3"]


def test_a_machine_whose_times_mean_nothing() -> None:
    assert not asked(LocalTransport(), replace(PROBES, facts="exit 1")).time_meaningful


def test_a_machine_under_user_emulation() -> None:
    """Its programs are the emulator's processes: neither times nor memory say anything of a real machine."""
    probes = replace(PROBES, read_facts=lambda answer: replace(described(answer), kind="user-emulation"))
    machine = asked(LocalTransport(), probes)
    assert (machine.memory_meaningful, machine.time_meaningful) == (False, False)
    device = remote.RemoteDevice(machine)
    assert (device.memory_meaningful, device.time_meaningful) == (False, False)
    assert (device.facts().memory_meaningful, device.facts().time_meaningful) == (False, False)
    assert asked(LocalTransport(), PROBES).memory_meaningful


class Machine:
    """A machine on which `taskset` ends as it is told to."""

    def __init__(self, returncode: int = 0, status: str = "") -> None:
        self.returncode = returncode
        self.status = status
        self.calls: list[tuple[str, ...]] = []

    def __call__(self, words: Sequence[str], seconds: float) -> Completed:
        assert seconds > 0
        self.calls.append(tuple(words))
        stderr = "taskset: Invalid argument"
        return Completed(argv=tuple(words), returncode=self.returncode, stdout=self.status, stderr=stderr)


@pytest.mark.parametrize("returncode", [1, 126, 127])
def test_machines_that_cannot_pin(returncode: int) -> None:
    error = refused(UsageError, check_pinning, Machine(returncode), (9,), "adb:x")
    assert (error.code, error.exit_code) == ("cannot-pin", ExitCode.USAGE)
    assert error.why == "taskset: Invalid argument"


@pytest.mark.parametrize("cores", [(-1,), (0, 1024), (10**9,)])
def test_cores_that_no_machine_has(cores: tuple[int, ...]) -> None:
    machine = Machine()
    assert (refused(UsageError, check_pinning, machine, cores, "adb:x").code, machine.calls) == ("cannot-pin", [])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in remote.VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


def test_a_board_has_the_folder_that_its_user_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of machine has a variable of its own; an empty one says nothing."""
    monkeypatch.setenv("ORTRIM_SSH_FOLDER", "/mnt/data disk")
    assert remote.base_folder("ssh", "/usual") == "/mnt/data disk"
    assert remote.base_folder("adb", "/data/local/tmp") == "/data/local/tmp"
    monkeypatch.setenv("ORTRIM_SSH_FOLDER", "")
    assert remote.base_folder("ssh", "/usual") == "/usual"


@pytest.mark.parametrize("folder", ["tmp", "~/x", "./x", "/a\nb", "-x"])
def test_what_is_no_whole_path(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Where it would end is nobody's guess."""
    monkeypatch.setenv("ORTRIM_ADB_FOLDER", folder)
    error = refused(UsageError, remote.base_folder, "adb", "/data/local/tmp")
    assert (error.code, error.where) == ("bad-folder", "ORTRIM_ADB_FOLDER")
    assert error.exit_code == ExitCode.USAGE
    assert "/data/local/tmp" in error.hint


@pytest.mark.parametrize("words", ["Permission denied", "Read-only file system"])
def test_hints_name_the_variable(words: str) -> None:
    """Of the kind of machine that they are about, and it is one that is read."""
    for error, variable in (
        (known_error(words, "R58"), "ORTRIM_ADB_FOLDER"),
        (ssh_error(words, "board"), "ORTRIM_SSH_FOLDER"),
    ):
        assert error is not None
        assert variable in error.hint
    assert "ORTRIM_ADB_FOLDER or ORTRIM_SSH_FOLDER" in remote.other_folder("other:1")
