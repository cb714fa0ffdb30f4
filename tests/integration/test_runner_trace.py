"""The runner's profile of single operators, with the official library, on this machine and on others."""

import dataclasses
import json
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import onnx
import pytest

from adb_machine import adb_machine
from device_requests import real_request
from ortrim.base.command import Completed, run
from ortrim.devices.adb import open_adb
from ortrim.devices.host import Host
from ortrim.devices.ssh import open_ssh
from ortrim.errors import VerifyError
from ortrim.parity.runner import TRACE, Repetition, RunRequest, runner_words
from refusing import refused
from ssh_machine import ssh_machine

pytestmark = [pytest.mark.network, pytest.mark.needs("gcc")]

LIMIT: Final = 64 << 20
BOTH: Final = Repetition(runs=1, warmup=0, timeout_seconds=60)
SMALL: Final = 'mount -t tmpfs -o size=32k none "$1"'
READ_ONLY: Final = 'mount -t tmpfs -o ro none "$1"'
SHORT: Final = "ulimit -f 16"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> RunRequest:
    """Return a request for the runner with the official library and a model of two nodes, in two cases."""
    request = real_request(tmp_path_factory.mktemp("runner"))
    return dataclasses.replace(request, trace=True, repetition=BOTH)


@pytest.fixture
def request_here(prepared: RunRequest, tmp_path: Path) -> RunRequest:
    """Return a request that leaves its outputs with the test."""
    (tmp_path / "outputs").mkdir()
    return dataclasses.replace(prepared, outputs=tmp_path / "outputs")


def renamed(request: RunRequest, name: str) -> RunRequest:
    assert request.outputs is not None
    model = onnx.load(request.model)
    model.graph.node[0].name = name
    folder = request.outputs.parent / "renamed"
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    return dataclasses.replace(request, model=folder / "model.onnx")


def events_of(request: RunRequest) -> list[dict[str, Any]]:
    """Return the events of the trace that a run left, of which nothing else lies beside the outputs."""
    assert request.outputs is not None
    assert sorted(path.name for path in request.outputs.iterdir()) == ["many", "one", TRACE]
    events: list[dict[str, Any]] = json.loads((request.outputs / TRACE).read_text())
    return events


def test_each_run_of_each_node_is_an_event(request_here: RunRequest) -> None:
    Host().run(request_here)
    events = events_of(request_here)
    nodes = [event for event in events if event["cat"] == "Node"]
    runs = [event for event in events if event["name"] == "model_run"]
    assert sorted(event["args"]["op_name"] for event in nodes) == ["Add"] * 4 + ["Tanh"] * 4
    assert len(runs) == 4
    for node in nodes:
        start, end = node["ts"], node["ts"] + node["dur"]
        # Whole microseconds, each cut off for itself.
        assert sum(run["ts"] <= start and end <= run["ts"] + run["dur"] + 2 for run in runs) == 1


def test_without_being_asked_no_profile_is_kept(request_here: RunRequest) -> None:
    Host().run(dataclasses.replace(request_here, trace=False))
    assert request_here.outputs is not None
    assert not list(request_here.outputs.glob("*.json"))


def test_a_trace_replaces_the_one_before(request_here: RunRequest) -> None:
    """Two runs into the same folder leave the second's trace."""
    for _ in range(2):
        Host().run(request_here)
    assert len([event for event in events_of(request_here) if event["name"] == "model_run"]) == 4


def test_the_outputs_folder_is_made(request_here: RunRequest) -> None:
    assert request_here.outputs is not None
    request_here.outputs.rmdir()
    Host().run(request_here)
    assert events_of(request_here)


def called(request: RunRequest, before: str) -> Completed:
    """Run the runner in namespaces of its own after a command of a shell, which finds the outputs' folder in `$1`."""
    shell = ("sh", "-c", f'{before} && shift && exec "$@"', "sh", str(request.outputs), *runner_words(request))
    return run(("unshare", "--user", "--map-root-user", "--mount", *shell), timeout_seconds=60)


@pytest.mark.needs("unshare")
@pytest.mark.parametrize(
    ("before", "words"),
    [
        (READ_ONLY, "Read-only file system"),
        (SMALL, "bytes could be written"),
        (SHORT, "bytes could be written"),
        ('rmdir "$1" && touch "$1"', "Not a directory"),
        ('rmdir "$1" && ln -s /nowhere/at/all "$1"', "No such file or directory"),
    ],
)
def test_a_trace_that_cannot_be_written(request_here: RunRequest, before: str, words: str) -> None:
    """A full disk, a limit to files and a folder that is none: each has its exit code and the system's own words."""
    done = called(dataclasses.replace(request_here, repetition=Repetition(runs=1000, warmup=0)), before)
    report = json.loads(done.stdout)
    assert (done.returncode, report["exit_code"], report["stage"]) == (7, 7, "trace"), done.stdout
    assert words in report["message"]
    assert request_here.outputs is not None
    assert not (request_here.outputs / TRACE).exists()


@pytest.mark.needs("unshare")
def test_outputs_that_do_not_fit(request_here: RunRequest) -> None:
    """The disk being full is what the message says."""
    done = called(dataclasses.replace(request_here, trace=False), 'mount -t tmpfs -o nr_inodes=2 none "$1"')
    report = json.loads(done.stdout)
    assert (done.returncode, report["stage"]) == (7, "output")
    assert "No space left on device" in report["message"]


def test_a_trace_has_a_longest_length(request_here: RunRequest) -> None:
    request = renamed(request_here, "n" * (1 << 20))
    few, many = (dataclasses.replace(BOTH, runs=runs) for runs in (1, LIMIT // (1 << 20)))
    Host().run(dataclasses.replace(request, repetition=few))
    assert request.outputs is not None
    assert (request.outputs / TRACE).stat().st_size > 1 << 20
    error = refused(VerifyError, Host().run, dataclasses.replace(request, repetition=many))
    assert error.code == "output-unwritable"
    assert "longer than 64 MiB: make fewer runs" in error.why
    assert not (request.outputs / TRACE).exists()


@pytest.mark.parametrize("name", ['the "best" node', "back\\slash"])
def test_names_that_the_runtime_does_not_escape(request_here: RunRequest, name: str) -> None:
    """A trace that no viewer would open is not handed on as one."""
    assert refused(VerifyError, Host().run, renamed(request_here, name)).code == "trace-unreadable"


def test_a_trace_needs_a_place(prepared: RunRequest) -> None:
    """Without a folder of outputs there is nowhere to leave it."""
    done = run(runner_words(dataclasses.replace(prepared, outputs=None)), timeout_seconds=60)
    assert (done.returncode, json.loads(done.stdout)["stage"]) == (2, "arguments")


@pytest.mark.needs("sshd")
def test_a_trace_comes_from_a_board(request_here: RunRequest) -> None:
    with ssh_machine() as machine:
        board = open_ssh("board", configuration=machine.configuration, base=str(machine.folder / "work"))
        with closing(board) as device:
            device.run(request_here)
    assert events_of(request_here)


@pytest.mark.needs("adb", "apt-get", "dpkg-deb", "unshare")
def test_a_trace_comes_from_a_phone(request_here: RunRequest) -> None:
    with adb_machine({}, devices=1) as machine, closing(open_adb(machine.serials[0], client=machine.client)) as device:
        device.run(request_here)
    assert events_of(request_here)
