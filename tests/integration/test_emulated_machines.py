"""Emulated machines for real: Debian's kernel and libraries, the real runner, a library that fails as it is told."""

import dataclasses
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from fake_runtime import ONCE, VALUES, Programs, device_called, fake_request
from ortrim.devices.qemu import QemuSystem, least_memory
from ortrim.errors import VerifyError
from ortrim.models.full_runtime import foreign_library
from ortrim.parity.inputs import Case, load_array, save_array
from ortrim.parity.runner import RunRequest
from ortrim.pins.shipped import pin_text
from refusing import refused
from running import processes_in

pytestmark = [
    pytest.mark.network,
    pytest.mark.needs("apt-get", "qemu-aarch64-static", "qemu-arm-static", "qemu-system-aarch64"),
]
Request = Callable[..., RunRequest]


@pytest.fixture
def request_for(tmp_path: Path, programs: Programs) -> Request:
    """Make a request for a target with a model that says how the library behaves."""

    def make(behaviour: str, target: str = "linux-arm64", seconds: float = 60.0) -> RunRequest:
        return fake_request(tmp_path, programs(target), behaviour, seconds=seconds)

    return make


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep temporary folders inside the test, to see what stays in them."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    ("target", "name", "machine"),
    [
        ("linux-arm64", "qemu-user:cortex-a53", "aarch64"),
        ("linux-arm64", "qemu-system:cortex-a53", "aarch64"),
        ("linux-arm64", "qemu-system:cortex-a76@128", "aarch64"),
        ("linux-arm64-musl", "qemu-user:cortex-a53", "aarch64"),
        ("linux-arm64-musl", "qemu-system:cortex-a53", "aarch64"),
        ("linux-armhf", "qemu-user:cortex-a7", "armv7l"),
        ("linux-armhf", "qemu-system:cortex-a53", "armv7l"),
        ("linux-riscv64", "qemu-user:rv64", "riscv64"),
    ],
)
def test_programs_run_on_every_machine(
    request_for: Request, temporary: Path, target: str, name: str, machine: str
) -> None:
    """The runner opens a library, runs it, and its outputs come back, byte for byte; nothing stays behind."""
    request = request_for("good", target)
    device = device_called(name, target)
    output = device.run(request)
    assert output.runtime_version == "0.0.1"
    assert output.memory.peak_source == "VmHWM"
    counted = output.cases[0].instructions
    assert (counted is not None and all(counted)) == name.startswith("qemu-system")
    assert request.outputs is not None
    assert load_array(request.outputs / "only" / "output_000.npy").tolist() == (2 * VALUES).tolist()
    facts = device.facts()
    assert (facts.machine, facts.page_bytes) == (machine, 4096)
    assert "libc6 " in facts.fingerprint
    assert (list(temporary.iterdir()), processes_in(temporary)) == ([], [])


@pytest.mark.parametrize("kind", ["qemu-user", "qemu-system"])
def test_an_instruction_that_one_processor_has(request_for: Request, kind: str) -> None:
    """What a Cortex-A53 refuses, a Cortex-A76 runs."""
    device_called(f"{kind}:cortex-a76").run(request_for("illegal"))


def test_a_machine_without_enough_memory(request_for: Request) -> None:
    """The kernel ends the runner, and its own line is the verdict's reason."""
    error = refused(VerifyError, device_called("qemu-system@96").run, request_for("allocate 200"))
    assert error.code == "out-of-memory"
    assert "Out of memory" in error.why
    assert "96 MiB" in error.why


def test_a_machine_too_small_to_start(request_for: Request) -> None:
    """A ceiling below the kernel's own needs is told as too little memory, or as a machine that did not start."""
    error = refused(VerifyError, device_called("qemu-system@40").run, request_for("good"))
    assert error.code in {"out-of-memory", "machine-crashed"}


def test_a_full_disk_in_the_machine(request_for: Request) -> None:
    """An output for which the machine has no room is the runner's own diagnostic."""
    error = refused(VerifyError, device_called("qemu-system@256").run, request_for("large 120"))
    assert error.code in {"output-unwritable", "out-of-memory"}


def test_a_large_output_comes_back(request_for: Request) -> None:
    """Ten megabytes of output take no special care."""
    request = request_for("large 10")
    device_called("qemu-system").run(request)
    assert request.outputs is not None
    assert load_array(request.outputs / "only" / "output_000.npy").nbytes == 10 << 20


def test_a_qemu_that_is_killed(request_for: Request, temporary: Path) -> None:
    """A machine that somebody ends from outside is told apart from one that fails, and leaves nothing."""

    def kill() -> None:
        for _ in range(600):
            for number in processes_in(temporary):
                time.sleep(1)
                os.kill(number, signal.SIGKILL)
                return
            time.sleep(0.1)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(VerifyError) as caught:
        device_called("qemu-system").run(request_for("hang"))
    thread.join()
    assert caught.value.code == "machine-lost"
    assert (list(temporary.iterdir()), processes_in(temporary)) == ([], [])


def test_the_least_memory_is_what_is_taken(request_for: Request) -> None:
    """A model that takes 60 MiB needs them, what the kernel takes, and little more."""
    device = device_called("qemu-system")
    assert isinstance(device, QemuSystem)
    found = least_memory(device, request_for("allocate 60"), model="fake", lower_mib=80, upper_mib=144, step_mib=4)
    assert found.enough_mib - found.too_little_mib <= 4
    left = found.usable_bytes / 2**20 - 60
    assert 0 < left < 20, found


@pytest.fixture(scope="module")
def official() -> Path:
    version = onnxruntime.__version__
    library = foreign_library(version, pin_text(f"requirements/onnxruntime-{version}.txt"), "arm64")
    assert library is not None
    return library


@pytest.fixture
def real_request(tmp_path: Path, official: Path, programs: Programs) -> RunRequest:
    (tmp_path / "real").mkdir()
    (tmp_path / "case").mkdir()
    (tmp_path / "outputs").mkdir()
    weights = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (4, 64)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "real" / "model.onnx").write_bytes(model.SerializeToString())
    save_array(tmp_path / "case", "input_000", np.arange(256, dtype=np.float32).reshape(4, 64))
    return RunRequest(
        runner=programs("linux-arm64") / "runner",
        library=official,
        model=tmp_path / "real" / "model.onnx",
        cases=(Case(name="only", folder=tmp_path / "case", digest="d"),),
        outputs=tmp_path / "outputs",
        repetition=ONCE,
    )


@pytest.mark.parametrize("name", ["qemu-user:cortex-a76", "qemu-system:cortex-a76"])
def test_the_official_library_runs_on_a_new_processor(real_request: RunRequest, name: str) -> None:
    """The real runtime computes there what NumPy computes here, and the profile of its operators comes along."""
    output = device_called(name).run(dataclasses.replace(real_request, trace=True))
    assert output.runtime_version == onnxruntime.__version__
    assert real_request.outputs is not None
    found = load_array(real_request.outputs / "only" / "output_000.npy")
    expected = np.arange(256, dtype=np.float32).reshape(4, 64) @ np.ones((64, 64), np.float32)
    assert np.array_equal(found, expected)


def test_memory_of_a_real_runtime_is_repeatable(real_request: RunRequest) -> None:
    """Two machines count the same pages, to a few."""
    device = device_called("qemu-system:cortex-a76")
    first, second = (device.run(real_request).memory.peak_rss_bytes for _ in range(2))
    assert first > 10**7
    assert abs(first - second) < 0.01 * first


@pytest.mark.skipif(onnxruntime.__version__ != "1.21.0", reason="the fault is that version's")
@pytest.mark.parametrize("name", ["qemu-user:cortex-a53", "qemu-system:cortex-a53", "qemu-user:cortex-a72"])
def test_a_real_illegal_instruction_is_caught(real_request: RunRequest, name: str) -> None:
    """The official 1.21.0 fails on the processors of a Raspberry Pi 3 and 4 (microsoft/onnxruntime#23957)."""
    assert refused(VerifyError, device_called(name).run, real_request).code == "illegal-instruction"
