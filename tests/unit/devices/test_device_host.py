import dataclasses
import os
from pathlib import Path

import pytest

from ortrim.base.command import Completed, run
from ortrim.devices.device import not_startable
from ortrim.devices.host import Host
from ortrim.devices.ssh import cut_tail, redirected
from ortrim.errors import ExitCode, UsageError, VerifyError
from ortrim.parity.runner import Repetition, RunRequest
from program_files import write_program

REQUEST = RunRequest(runner=Path("/absent/runner"), library=Path("/l.so"), model=Path("/m.ort"), cases=())


def request_with(tmp_path: Path, script: str) -> RunRequest:
    runner = write_program(tmp_path / "runner", script)
    return dataclasses.replace(REQUEST, runner=runner, repetition=Repetition(timeout_seconds=5.0))


def refused(request: RunRequest) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        Host().run(request)
    assert caught.value.exit_code == ExitCode.VERIFY
    return caught.value


def test_an_absent_runner() -> None:
    error = refused(REQUEST)
    assert (error.code, error.where) == ("runner-not-startable", "/absent/runner")


def test_the_users_environment_stays_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the shell reaches the runner but the one that says where locales lie."""
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.setenv("LOCPATH", "/my/locales")
    printed = refused(request_with(tmp_path, "env >&2; exit 4")).why
    assert "OMP" not in printed
    assert "LOCPATH=/my/locales" in printed


def only_core() -> int:
    return min(os.sched_getaffinity(0))


def test_runs_are_kept_on_chosen_cores(tmp_path: Path) -> None:
    device = Host((only_core(),))
    with pytest.raises(VerifyError) as caught:
        device.run(request_with(tmp_path, "grep Cpus_allowed_list /proc/self/status >&2; exit 4"))
    assert caught.value.why.split() == ["Cpus_allowed_list:", str(only_core())]
    assert device.facts().pinned_cores == (only_core(),)
    assert Host().facts().pinned_cores == ()


@pytest.mark.parametrize("cores", [(1000,), (0, 1000)])
def test_cores_that_this_machine_does_not_have(cores: tuple[int, ...]) -> None:
    """All of them have to be there, or the number would be of others than asked for."""
    with pytest.raises(UsageError) as caught:
        Host(cores)
    assert (caught.value.code, caught.value.where) == ("cannot-pin", "host")


def test_a_runner_that_cannot_be_started_on_chosen_cores(tmp_path: Path) -> None:
    """What ends with 127 then is `taskset`, not the runner."""
    with pytest.raises(VerifyError) as caught:
        Host((only_core(),)).run(REQUEST)
    assert (caught.value.code, caught.value.where) == ("runner-not-startable", "/absent/runner")


def test_the_machine_is_described() -> None:
    facts = Host().facts()
    assert facts.system == "Linux"
    assert facts.cores >= 1
    assert facts.memory_bytes > 10**8
    assert facts.cpu
    assert facts.kind in {"physical", "vm"}
    assert (facts.memory_meaningful, facts.time_meaningful) == (True, True)
    assert facts.page_bytes
    assert facts.os_version.startswith("Linux ")
    Host().close()


def test_a_machine_without_a_list_of_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the kernel names no processor, the machine's architecture stands for it."""
    monkeypatch.setattr("ortrim.devices.host._cpu_information", lambda: "")
    facts = Host().facts()
    assert facts.cpu
    assert (facts.cpu_features, facts.kind) == ((), "physical")


def test_all_three_streams(tmp_path: Path) -> None:
    """Each stream is its file, whatever the names, and the exit code is the program's."""
    given, printed, complaints = (tmp_path / name for name in ("in '$x\n", "out ; true", "err *"))
    given.write_bytes(b"\0\xff")
    words = ("sh", "-c", 'cat; echo "$1" >&2; exit 3', "sh", "a 'b' $c")
    done = run(redirected(words, given=given, printed=printed, complaints=complaints))
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    assert printed.read_bytes() == b"\0\xff"
    assert complaints.read_text() == "a 'b' $c\n"


@pytest.mark.parametrize(
    ("content", "left", "stdout"),
    [
        (b"data\n@@m 0 0\n", b"data", "\n@@m 0 0\n"),
        (b"\n@@ a\ndata\n@@m 0 0\n", b"\n@@ a\ndata", "\n@@m 0 0\n"),
        (b"x" * 5000 + b"\n@@m 0 0\n", b"x" * 5000, "\n@@m 0 0\n"),
        (b"cut", b"cut", "before"),
        (b"", b"", "before"),
        (b"\n@@m" + b"x" * 500, b"\n@@m" + b"x" * 500, "before"),
    ],
)
def test_the_tail_is_cut(tmp_path: Path, content: bytes, left: bytes, stdout: str) -> None:
    """What follows the last mark near the end is taken out of a file; without one it stays whole."""
    path = tmp_path / "file"
    path.write_bytes(content)
    done = cut_tail(path, b"\n@@", Completed(argv=("x",), returncode=0, stdout="before", stderr="e"))
    assert (path.read_bytes(), done.stdout, done.stderr) == (left, stdout, "e")


def test_a_runner_that_cannot_start_has_its_reasons() -> None:
    """What the machine said is kept, and what else may be the reason there is added to the hint."""
    plain, besides = not_startable("host", "said"), not_startable("ssh:x", "said", "/data must not be mounted noexec")
    assert {plain.code, besides.code} == {"runner-not-startable"}
    assert (plain.where, plain.why) == ("host", "said")
    assert besides.hint == f"{plain.hint}; /data must not be mounted noexec"
