import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from device_samples import GOOD, MACHINE, REPORT, LocalTransport, sample_request
from failing_runs import run_refused
from ortrim.base.command import Completed, run
from ortrim.devices.remote import Payload, RemoteDevice, RemoteFolder, RemoteMachine, make_payload, run_marked
from ortrim.errors import Diagnostic, ExitCode, VerifyError
from ortrim.parity.measurements import HostFacts


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "machine").mkdir()
    return tmp_path / "machine"


def machine_in(folder: Path, transport: LocalTransport | None = None) -> RemoteMachine:
    return RemoteMachine(
        name="local:1",
        transport=transport or LocalTransport(),
        base=str(folder / "tmp"),
        describe=lambda: MACHINE,
    )


def device_on(machine: Path, transport: LocalTransport | None = None) -> RemoteDevice:
    return RemoteDevice(machine_in(machine, transport))


def left(machine: Path) -> list[str]:
    return sorted(path.relative_to(machine / "tmp").as_posix() for path in (machine / "tmp").rglob("*"))


def test_cores_and_preparation(machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner is kept on the chosen cores, and what has to happen before a run happens before each."""
    transport = LocalTransport()
    calls: list[str] = []
    core = min(os.sched_getaffinity(0))
    on_one = dataclasses.replace(machine_in(machine, transport), cores=(core,))
    device = RemoteDevice(on_one)
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
    """Neither the run's failure nor closing is hidden behind a clean-up that fails too."""
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
    device = RemoteDevice(hot)
    device.run(sample_request(tmp_path))
    first, second = device.facts(), device.facts()
    assert (first.thermal_before, first.thermal_after) == (1, 2)
    assert (second.thermal_before, second.thermal_after) == (1, 3)
    assert (first.memory_meaningful, first.time_meaningful) == (True, False)
    assert isinstance(first, HostFacts)


def test_devices_side_by_side_do_not_meet(machine: Path, tmp_path: Path) -> None:
    """Two devices on one machine have folders of their own, and closing one leaves the other's."""
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


def folder_below(base: Path, transport: LocalTransport | None = None) -> RemoteFolder:
    return RemoteFolder(transport or LocalTransport(), base=f"{base}/", owner="local:1")


def payload_for(folder: RemoteFolder, place: Path) -> Payload:
    return make_payload(sample_request(place), folder.files, f"{folder.path}/outputs")


def refused(action: Callable[[], None]) -> Diagnostic:
    with pytest.raises(VerifyError) as caught:
        action()
    assert (caught.value.exit_code, caught.value.where) == (ExitCode.VERIFY, "local:1")
    return caught.value


def test_a_push_is_not_believed(base: Path, tmp_path: Path) -> None:
    """What arrives cut short is noticed by its digest, and is sent again by the next run."""

    class Cutting(LocalTransport):
        def push(self, files: Mapping[str, Path], folder: str) -> None:
            super().push(files, folder)
            next(Path(folder).rglob("library.so")).write_bytes(b"the lib")

    transport = Cutting()
    folder = folder_below(base, transport)
    payload = payload_for(folder, tmp_path)
    assert refused(lambda: folder.push(payload)).code == "push-incomplete"
    assert refused(lambda: folder.push(payload)).code == "push-incomplete"
    assert len(transport.pushed) == 8


def test_files_that_did_not_arrive(base: Path, tmp_path: Path) -> None:
    """A push that claims success and sends nothing is noticed, in the words of the machine."""

    class Silent(LocalTransport):
        def push(self, files: Mapping[str, Path], folder: str) -> None:
            pass

    folder = folder_below(base, Silent())
    error = refused(lambda: folder.push(payload_for(folder, tmp_path)))
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

        return run_marked(words, start, limit_seconds=timeout_seconds, name="local:1", explain=self._lost)

    @staticmethod
    def _lost(printed: str) -> VerifyError:
        return VerifyError("device-lost", printed)


NEEDED = ("chmod", "mkdir", "rm", "sleep")


def test_a_machine_without_a_program_for_checksums(base: Path, tmp_path: Path) -> None:
    """It is said what is missing; more room would not help."""
    folder = folder_below(base, Shell(tmp_path / "programs", NEEDED))
    error = refused(lambda: folder.push(payload_for(folder, tmp_path)))
    assert (error.code, "none of sha256sum, sha1sum, md5sum" in error.what) == ("device-unusable", True)
    assert "not found" in error.why
    assert "space" not in error.hint


def test_names_that_are_written_in_another_way(base: Path, tmp_path: Path) -> None:
    """A file with a backslash in its name arrives like any other."""
    request = sample_request(tmp_path)
    (request.cases[0].folder / "in\\put.npy").write_bytes(b"x")
    folder = folder_below(base)
    folder.push(make_payload(request, folder.files, "/outputs"))
    assert len(list(Path(folder.files).rglob("in\\put.npy"))) == 1


def test_a_folder_that_cannot_be_made(base: Path) -> None:
    """A base that is a file is of no use, and it is said why."""
    base.parent.mkdir()
    base.write_text("a file")
    error = refused(folder_below(base).open)
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
