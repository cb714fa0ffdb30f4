"""Whatever happens to a run, on every kind of device: a verdict that says what, and no process and no file behind."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from adb_machine import until
from device_kinds import EVERY_KIND, KINDS, Kind
from failing_runs import run_refused
from fake_runtime import VALUES, Programs, fake_request
from ortrim.errors import VerifyError
from ortrim.parity.inputs import load_array
from ortrim.parity.runner import RunRequest
from running import end_all, processes_in

pytestmark = [pytest.mark.network, pytest.mark.parametrize("kind", EVERY_KIND, indirect=True)]
Requested = Callable[..., RunRequest]
INTERRUPTED: Final = Path(__file__).parents[1] / "support" / "interrupted_run.py"


@pytest.fixture(scope="module")
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kind]:
    with KINDS[request.param](tmp_path_factory.getbasetemp()) as made:
        yield made


@pytest.fixture
def requested(kind: Kind, programs: Programs, tmp_path: Path) -> Requested:
    """Make a request of a library that behaves so; its files lie in a folder of that name."""

    def make(behaviour: str, seconds: float = 60.0) -> RunRequest:
        return fake_request(tmp_path / behaviour, programs(kind.target), behaviour, seconds=seconds)

    return make


@pytest.fixture(autouse=True)
def temporary(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder for this side's temporary files, with a short name, and see that nothing stays, here or there."""
    folder = Path(tempfile.mkdtemp(prefix="ortrim-faults-", dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    until(lambda: not kind.processes(), "a runner is left")
    until(lambda: not processes_in(folder), "a program is left")
    assert (kind.files(), list(folder.iterdir())) == ([], [])
    folder.rmdir()


@pytest.mark.parametrize(
    ("behaviour", "verdict"),
    [
        ("crash", ("runner-crashed", "SIGSEGV")),
        ("abort", ("runner-crashed", "SIGABRT")),
        ("bus", ("runner-crashed", "SIGBUS")),
        ("kill", ("runner-crashed", "SIGKILL")),
        ("illegal", ("illegal-instruction", "instruction")),
        ("refuse", ("model-refused", "model")),
        ("quit 42", ("runner-failed", "42")),
        ("quit 0", ("runner-garbage", "report")),
        ("half", ("runner-garbage", "report")),
    ],
)
def test_ends_that_are_bad(kind: Kind, requested: Requested, behaviour: str, verdict: tuple[str, str]) -> None:
    with closing(kind.opening()) as device:
        error = run_refused(device, requested(behaviour))
    reference, says = verdict
    assert (error.code, says in error.what) == (reference, True)


def test_a_device_goes_on_after_a_crash(kind: Kind, requested: Requested, tmp_path: Path) -> None:
    """The next run on the same device has right results, whatever the last one left."""
    with closing(kind.opening()) as device:
        assert run_refused(device, requested("crash")).code == "runner-crashed"
        assert device.run(requested("print")).status == "ok"
    assert np.array_equal(load_array(tmp_path / "print/outputs/only/output_000.npy"), 2 * VALUES)


@pytest.mark.parametrize("behaviour", ["hang", "family"])
def test_a_runner_that_hangs(kind: Kind, requested: Requested, behaviour: str) -> None:
    """The time limit ends it, and a child that it started in a session of its own."""
    with closing(kind.opening()) as device:
        error = run_refused(device, requested(behaviour, 2))
    assert (error.code, "2 seconds" in error.what) == ("runner-timeout", True)


def test_output_without_an_end(kind: Kind, requested: Requested) -> None:
    """A library that prints and prints is stopped before this machine's memory is full, or at the time limit."""
    slow = kind.name.startswith("qemu-system")
    with closing(kind.opening()) as device:
        error = run_refused(device, requested("endless", 5 if slow else 120))
    assert error.code == ("runner-timeout" if slow else "endless-output")


@pytest.mark.parametrize("content", [b"\x7fELF" + bytes(60), b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\xf3\0"])
def test_a_runner_for_another_machine(kind: Kind, requested: Requested, tmp_path: Path, content: bytes) -> None:
    """A program that is none, or for another processor, is told apart from one that failed."""
    runner = tmp_path / "foreign"
    runner.write_bytes(content)
    runner.chmod(0o755)
    with closing(kind.opening()) as device:
        assert run_refused(device, replace(requested("good"), runner=runner)).code == "runner-not-startable"


def test_two_runs_at_once(kind: Kind, requested: Requested, tmp_path: Path) -> None:
    """Two verifications of one device at the same time do not see each other, and one's crash is its own."""
    good, bad = requested("good"), requested("crash")

    def verify(request: RunRequest) -> str:
        with closing(kind.opening()) as device:
            for _ in range(2):
                device.run(request)
        return "ok"

    with ThreadPoolExecutor(2) as threads:
        ran, crashed = threads.submit(verify, good), threads.submit(verify, bad)
    assert ran.result() == "ok"
    error = crashed.exception()
    assert isinstance(error, VerifyError)
    assert error.code == "runner-crashed"
    assert np.array_equal(load_array(tmp_path / "good/outputs/only/output_000.npy"), 2 * VALUES)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption(
    kind: Kind, requested: Requested, temporary: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C in the middle of a run ends it here and there, and so do a kill and a terminal that closes."""
    (tmp_path / "run").write_bytes(pickle.dumps((kind.opening, requested("family", 300))))
    words = (sys.executable, str(INTERRUPTED), str(tmp_path / "run"))
    child = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(temporary)}, start_new_session=True)
    try:
        until(lambda: kind.busy(temporary), "the runner did not start", 60)
        # To the whole group, as a terminal does; programs that the run started have sessions of their own.
        os.killpg(child.pid, number)
        assert child.wait(60) == 128 + number
    except BaseException:
        child.kill()
        child.wait()
        end_all(str(tmp_path))  # so that the next tests do not fail of this one's leftovers
        raise
