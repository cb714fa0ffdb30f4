import sys
import threading
import time
from pathlib import Path

import pytest

from device_samples import sample_request
from ortrim.base.command import stopped_by
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of the environments of processes")
def test_an_interruption_leaves_no_child(tmp_path: Path) -> None:
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
    request = sample_request(tmp_path)
    request.runner.write_bytes(content)
    error = refused((str(request.runner),), request)
    assert (error.code, error.where) == ("runner-not-startable", str(request.runner))
