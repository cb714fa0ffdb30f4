import sys
import threading
import time
from pathlib import Path

import pytest

from device_samples import sample_request
from ortrim.base.command import stopped_by
from ortrim.base.tools import MOST_PRINTED_BYTES
from ortrim.devices import host
from ortrim.devices.host import run_locally
from ortrim.errors import ExitCode, VerifyError
from ortrim.parity.runner import RunRequest
from running import running

ESCAPES = "import os, sys, time; open(sys.argv[1], 'w').close() if os.fork() else os.setsid(); time.sleep(60)"
"""Starts a child that leaves the group of processes in which it was started, and hangs."""


def escaping(path: Path) -> tuple[str, ...]:
    """Return the command that escapes, with a file that it makes when it has."""
    return (sys.executable, "-I", "-S", "-c", ESCAPES, str(path))


def refused(words: tuple[str, ...], request: RunRequest) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        run_locally(words, request)
    assert caught.value.exit_code == ExitCode.VERIFY
    return caught.value


def wait_until_gone(word: str) -> None:
    end = time.monotonic() + 20
    while word in running():
        assert time.monotonic() < end, "a process is left"
        time.sleep(0.02)


def test_the_environment_is_ours(tmp_path: Path) -> None:
    """Nothing of the user's own variables gets there."""
    done = run_locally(("/usr/bin/env",), sample_request(tmp_path), cwd=tmp_path)
    assert {line.partition("=")[0] for line in done.stdout.splitlines()} <= {
        "PATH",
        "LC_ALL",
        "LOCPATH",
        "ORTRIM_RUN",
        "PWD",
    }


def test_an_endless_runner_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever prints without an end is stopped long before this machine's memory is full, and its time is up."""
    monkeypatch.setattr(host, "MOST_PRINTED_BYTES", 1 << 20)
    error = refused(("/bin/sh", "-c", f": {tmp_path}; while :; do echo again; done >&2"), sample_request(tmp_path))
    assert (error.code, error.where) == ("endless-output", "libonnxruntime.so with tiny.ort")
    wait_until_gone(str(tmp_path))


def test_the_limit_leaves_room_for_reports() -> None:
    """A million samples, as the runner prints them, are no endless output."""
    assert len("123.456789," * 3) * 10**6 < MOST_PRINTED_BYTES


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the environments of processes")
def test_a_child_that_left_is_killed(tmp_path: Path) -> None:
    """A runner's child in a session of its own does not outlive the time limit."""
    assert refused(escaping(tmp_path / "escaped"), sample_request(tmp_path, seconds=1)).code == "runner-timeout"
    assert (tmp_path / "escaped").exists()
    wait_until_gone(str(tmp_path / "escaped"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the environments of processes")
def test_an_interruption_leaves_no_child(tmp_path: Path) -> None:
    """Ctrl-C ends the runner and its children wherever they went."""
    asked, caught = threading.Event(), []

    def work() -> None:
        with stopped_by(asked):
            try:
                run_locally(escaping(tmp_path / "escaped"), sample_request(tmp_path))
            except KeyboardInterrupt as error:
                caught.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not (tmp_path / "escaped").exists():
        time.sleep(0.01)
    asked.set()
    thread.join()
    assert len(caught) == 1
    wait_until_gone(str(tmp_path / "escaped"))


@pytest.mark.parametrize("content", [b"", b"\x7fELF" + bytes(60)])
def test_a_runner_for_another_machine(tmp_path: Path, content: bytes) -> None:
    """What this machine's kernel cannot run is said so."""
    request = sample_request(tmp_path)
    request.runner.write_bytes(content)
    error = refused((str(request.runner),), request)
    assert (error.code, error.where) == ("runner-not-startable", str(request.runner))
