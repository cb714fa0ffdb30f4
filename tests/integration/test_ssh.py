"""Boards behind ssh, for real: an sshd on loopback, and whatever can go wrong with a network, a key or a disk."""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from adb_machine import until
from device_requests import real_request, script_request
from failing_runs import run_refused
from ortrim.devices.host import Host
from ortrim.devices.ssh import SshClient, SshDevice, SshTransport, open_ssh
from ortrim.errors import Diagnostic, ExitCode, StorageError, UsageError
from ssh_machine import SshMachine, ssh_machine

pytestmark = [pytest.mark.network, pytest.mark.needs("sshd")]
mounts = pytest.mark.needs("root")


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SshMachine]:
    """Run a board for one test, which is to leave nothing there, and nothing among this side's temporary files."""
    with ssh_machine() as machine:
        monkeypatch.setattr(tempfile, "tempdir", str(machine.folder / "mine"))
        yield machine
        assert leftovers() == set()
        assert list(machine.work.iterdir()) == []


def opened(machine: SshMachine, folder: str = "work", cores: tuple[int, ...] = ()) -> SshDevice:
    return open_ssh("board", configuration=machine.configuration, base=str(machine.folder / folder), cores=cores)


def unreachable(machine: SshMachine, destination: str) -> Diagnostic:
    """Return the diagnostic of a connection that cannot be made, and see that nothing of it stays."""
    with pytest.raises(Diagnostic) as caught:
        open_ssh(destination, configuration=machine.configuration)
    assert leftovers() == set()
    return caught.value


def leftovers() -> set[Path]:
    return set(Path(tempfile.gettempdir()).iterdir())


@pytest.mark.needs("gcc")
def test_the_real_runner_runs(board: SshMachine, tmp_path: Path) -> None:
    """The runner, the official library and a model go to the board, run there, and give the host's outputs."""
    request = real_request(tmp_path)
    Host().run(request)
    assert request.outputs is not None
    files = sorted(path.relative_to(request.outputs) for path in request.outputs.rglob("*.npy"))
    expected = {name: np.load(request.outputs / name) for name in files}
    shutil.rmtree(request.outputs)
    with closing(opened(board)) as device:
        output = device.run(request)
        again = device.run(request)
        assert len(leftovers()) == 1
    assert [case.name for case in output.cases] == [case.name for case in again.cases] == ["one", "many"]
    assert len(files) == 2
    for name, array in expected.items():
        np.testing.assert_array_equal(np.load(request.outputs / name), array)


def test_a_board_describes_itself(board: SshMachine) -> None:
    with closing(opened(board)) as device:
        facts = device.facts()
    assert (facts.system, facts.machine, facts.page_bytes) == ("Linux", os.uname().machine, os.sysconf("SC_PAGESIZE"))
    assert facts.os_version.endswith(f"Linux {os.uname().release}")
    assert facts.memory_bytes > 10**8
    assert facts.api_level is None


def test_words_arrive_as_they_are(board: SshMachine) -> None:
    """Nothing in a word means anything to the shells on the way."""
    words = ("a b", "$HOME", "`id`", "'", '"', "\\n", "*", "", ";true", "-n", "ü\n\n", "@@0 0", "!")
    with closing(opened(board)) as device:
        done = device._transport.execute(("printf", "%s\\n|", *words), timeout_seconds=10)
    assert done.stdout == "".join(f"{word}\n|" for word in words)


@pytest.mark.parametrize("code", [0, 1, 37, 255])
def test_exit_codes_arrive(board: SshMachine, code: int) -> None:
    with closing(opened(board)) as device:
        words = ("sh", "-c", f"echo out; echo err >&2; exit {code}")
        done = device._transport.execute(words, timeout_seconds=10)
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")


def test_files_come_and_go(board: SshMachine, tmp_path: Path) -> None:
    """Names with anything in them, empty files and empty folders all travel."""
    files = {"a b/c": tmp_path / "1", "ü'\"$x": tmp_path / "2", "-dash": tmp_path / "3"}
    for number, path in enumerate(files.values()):
        path.write_bytes(bytes(range(number * 100)))
    folder = str(board.work / "there")
    (tmp_path / "back").mkdir()
    with closing(opened(board)) as device:
        device._transport.push(files, folder)
        device._transport.pull(folder, tmp_path / "back")
        shutil.rmtree(folder)
        (board.work / "there").mkdir()
        device._transport.pull(folder, tmp_path / "back")
        (board.work / "there").rmdir()
    found = {
        str(path.relative_to(tmp_path / "back")): path for path in (tmp_path / "back").rglob("*") if path.is_file()
    }
    assert {name: path.read_bytes() for name, path in found.items()} == {
        name: path.read_bytes() for name, path in files.items()
    }


@contextmanager
def cut_during(board: SshMachine, words: str) -> Iterator[None]:
    """Break the connection as soon as a program runs on the board, while something else is done here."""

    def cut() -> None:
        until(lambda: board.runs(words), f"{words} did not start")
        board.cut()

    thread = threading.Thread(target=cut)
    thread.start()
    yield
    thread.join()


def test_a_connection_that_breaks(board: SshMachine, tmp_path: Path) -> None:
    """A broken connection is a lost device; the runner is ended, and the folder removed, by a new connection."""
    with cut_during(board, "sleep 624"), closing(opened(board)) as device:
        error = run_refused(device, script_request(tmp_path, "exec sleep 624", timeout_seconds=20))
    assert (error.code, error.where) == ("device-lost", "ssh:board")
    board.wait_until_gone("sleep 624")


@pytest.mark.parametrize("step", ["-x", "-c"])
def test_a_connection_that_breaks_in_a_copy(board: SshMachine, tmp_path: Path, step: str) -> None:
    """In a push or a pull it is a lost device too, and a new connection ends and removes what was begun."""
    board.shim("tar", f'case "$*" in *{step}*) exec sleep 625;; esac; exec /bin/tar "$@"')

    with cut_during(board, "sleep 625"), closing(opened(board)) as device:
        error = run_refused(device, script_request(tmp_path, "exit 4"))
    assert (error.code, error.where) == ("device-lost", "ssh:board")
    board.wait_until_gone("sleep 625")


@mounts
def test_a_full_disk(board: SshMachine, tmp_path: Path) -> None:
    """What does not fit is said, and what did go there is removed."""
    with closing(opened(board, "small")) as device:
        error = run_refused(device, script_request(tmp_path, "exit 0", size=5 << 20))
        left = device._transport.execute(("ls", "-A", str(board.folder / "small")), timeout_seconds=10)
        assert error.code == "device-full"
        device.close()
        device.client.connect()
        left = device._transport.execute(("ls", "-A", str(board.folder / "small")), timeout_seconds=10)
        assert left.stdout == ""


@mounts
def test_a_folder_from_which_nothing_runs(board: SshMachine, tmp_path: Path) -> None:
    """A folder mounted noexec is not taken for a runner that failed."""
    with closing(opened(board, "locked")) as device:
        error = run_refused(device, script_request(tmp_path, "exit 0"))
    assert error.code == "runner-not-startable"


def test_a_folder_that_may_not_be_written(board: SshMachine, tmp_path: Path) -> None:
    device = open_ssh("board", configuration=board.configuration, base="/proc")
    with closing(device):
        error = run_refused(device, script_request(tmp_path, "exit 0"))
    assert (error.code, "/proc" in error.why) == ("device-unusable", True)
    assert "ORTRIM_SSH_FOLDER" in error.hint


def test_another_folder_is_taken_from_the_environment(
    board: SshMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORTRIM_SSH_FOLDER", str(board.work))
    with closing(open_ssh("board", configuration=board.configuration)) as device:
        error = run_refused(device, script_request(tmp_path, 'echo "$0" >&2; exit 4'))
    assert error.why.startswith(f"{board.work}/ortrim-")


def test_an_unknown_host_key(board: SshMachine) -> None:
    (board.folder / "known").write_text("")
    error = unreachable(board, "board")
    assert (error.code, error.exit_code) == ("ssh-host-unknown", ExitCode.VERIFY)
    assert error.hint.endswith("ssh board")
    assert (board.folder / "known").read_text() == ""


def test_another_host_key(board: SshMachine) -> None:
    known = board.folder / "known"
    key = (board.folder / "key.pub").read_text()
    known.write_text(f"[127.0.0.1]:{board.port} {key}")
    assert unreachable(board, "board").code == "ssh-host-changed"


def test_a_key_that_is_not_let_in(board: SshMachine) -> None:
    error = unreachable(board, "stranger")
    assert error.code == "ssh-denied"
    assert "ssh-copy-id stranger" in error.hint


def test_nobody_listens(board: SshMachine) -> None:
    assert unreachable(board, "ssh://127.0.0.1:1").code == "ssh-refused"


def test_no_such_machine(board: SshMachine) -> None:
    assert unreachable(board, "ortrim.invalid").code == "ssh-no-such-host"


def test_a_broken_configuration(board: SshMachine) -> None:
    """What ssh refuses to read is said in its own words."""
    board.configuration.write_text("Nonsense yes\n")
    error = unreachable(board, "board")
    assert error.code == "ssh-misconfigured"
    assert "nonsense" in error.why.lower()


@pytest.mark.parametrize("destination", ["-oProxyCommand=touch x", "", "a b", "a\nb", "x" * 300])
def test_destinations_that_are_none(destination: str) -> None:
    """Nothing that could be an option reaches ssh."""
    with pytest.raises(UsageError) as caught:
        SshClient(destination)
    assert caught.value.code == "bad-destination"


def test_an_archive_that_leads_outside(board: SshMachine, tmp_path: Path) -> None:
    """A board that sends `../` writes no file of ours."""
    (tmp_path / "evil").write_text("evil")
    board.shim("tar", f"cd {tmp_path}/deep && exec /bin/tar -c -f - -P ../evil")
    (tmp_path / "deep").mkdir()
    (tmp_path / "back").mkdir()
    with closing(opened(board)) as device, pytest.raises(StorageError) as caught:
        device._transport.pull(str(board.work), tmp_path / "back")
    assert caught.value.code == "unsafe-archive"
    assert list((tmp_path / "back").iterdir()) == []


def test_a_board_without_tar(board: SshMachine, tmp_path: Path) -> None:
    """What the board says of a failed copy is passed on."""
    board.shim("tar", "echo 'tar: of no use' >&2; exit 1")
    (tmp_path / "back").mkdir()
    with closing(opened(board)) as device:
        with pytest.raises(Diagnostic) as caught:
            device._transport.pull(str(board.work), tmp_path / "back")
        assert (caught.value.code, caught.value.why) == ("copy-failed", "tar: of no use")
        assert run_refused(device, script_request(tmp_path / "r", "exit 0")).code == "copy-failed"


def test_pinning(board: SshMachine, tmp_path: Path) -> None:
    """On chosen cores, the runner may run on these alone; cores that are not there are refused before."""
    with closing(opened(board, cores=(0,))) as device:
        error = run_refused(device, script_request(tmp_path, "grep Cpus_allowed_list /proc/self/status >&2; exit 4"))
    assert error.why.split() == ["Cpus_allowed_list:", "0"]
    with pytest.raises(UsageError) as caught:
        opened(board, cores=(777,))
    assert caught.value.code == "cannot-pin"
    assert leftovers() == set()


def test_a_client_that_is_not_connected_works(board: SshMachine) -> None:
    """The shared connection makes things faster, and is not needed."""
    client = SshClient("board", board.configuration)
    done = SshTransport(client).execute(("echo", "hi"), timeout_seconds=20)
    assert (done.returncode, done.stdout) == (0, "hi\n")
    client.close()
