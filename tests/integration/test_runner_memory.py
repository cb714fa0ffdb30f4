"""What the runner says of memory, with the official library: at most, and at most after loading was over."""

import dataclasses
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from device_requests import real_request
from ortrim.base.command import run
from ortrim.devices.host import Host
from ortrim.parity.inputs import Case
from ortrim.parity.runner import MemoryUse, RunRequest, runner_words

pytestmark = [pytest.mark.network, pytest.mark.needs("gcc")]

MIB: Final = 1 << 20
LARGE: Final = 64 * MIB
SLACK: Final = 8 * MIB
"""For what the runtime takes besides, and since the kernel counts pages by processor and sums up now and then."""
HIDDEN: Final = "mount -t tmpfs none /proc"
READ_ONLY: Final = "mount -o remount,bind,ro /proc"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> RunRequest:
    """Return a request for the runner with the official library."""
    return real_request(tmp_path_factory.mktemp("runner"))


def request_of(
    prepared: RunRequest, folder: Path, nodes: list[onnx.NodeProto], weights: np.ndarray[Any, Any]
) -> RunRequest:
    """Return a request for a model with one input, the first row's number, one output and these weights."""
    ends = [helper.make_tensor_value_info(name, kind, None) for name, kind in (("x", 7), ("y", TensorProto.FLOAT))]
    ends[0].type.tensor_type.shape.dim.add().dim_value = 1
    initializer = onnx.numpy_helper.from_array(weights, "w")
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [initializer])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "large").mkdir()
    onnx.save(model, folder / "large" / "model.onnx")
    (folder / "case").mkdir()
    np.save(folder / "case" / "input_000.npy", np.zeros(1, np.int64))
    case = Case(name="only", folder=folder / "case", digest="d")
    return dataclasses.replace(prepared, model=folder / "large" / "model.onnx", cases=(case,), outputs=None)


@pytest.fixture
def heavy_to_load(prepared: RunRequest, tmp_path: Path) -> RunRequest:
    """Return a request for a model whose weights are read from one copy into another, and of which it takes a row."""
    nodes = [helper.make_node("Gather", ["w", "x"], ["y"])]
    return request_of(prepared, tmp_path, nodes, np.ones((LARGE // 4096, 1024), np.float32))


@pytest.fixture
def heavy_to_run(prepared: RunRequest, tmp_path: Path) -> RunRequest:
    """Return a request for a model with weights of a few bytes, which makes a large tensor of them and sums it up."""
    nodes = [
        helper.make_node("Gather", ["w", "x"], ["first"]),
        helper.make_node("Constant", [], ["shape"], value_ints=[LARGE // 4096, 1024]),
        helper.make_node("Expand", ["first", "shape"], ["large"]),
        helper.make_node("ReduceMax", ["large"], ["y"], keepdims=0),
    ]
    return request_of(prepared, tmp_path, nodes, np.ones((1, 1024), np.float32))


def used(request: RunRequest) -> MemoryUse:
    memory = Host().run(request).memory
    assert memory.peak_source == "VmHWM"
    return memory


def test_memory_of_loading_is_not_that_of_running(heavy_to_load: RunRequest) -> None:
    """The peak of a load that copies weights stays the peak; what is needed after it is told apart."""
    memory = used(heavy_to_load)
    assert memory.loaded_rss_bytes is not None
    assert memory.inference_peak_rss_bytes is not None
    assert memory.peak_rss_bytes > 2 * LARGE
    assert LARGE < memory.inference_peak_rss_bytes < memory.peak_rss_bytes - LARGE + SLACK
    assert abs(memory.inference_peak_rss_bytes - memory.loaded_rss_bytes) < SLACK


def test_memory_of_running_is_in_both_peaks(heavy_to_run: RunRequest) -> None:
    """Large activations come after loading, and are the peak of the whole process as well."""
    memory = used(heavy_to_run)
    assert memory.loaded_rss_bytes is not None
    assert memory.inference_peak_rss_bytes is not None
    assert memory.inference_peak_rss_bytes > memory.loaded_rss_bytes + LARGE - SLACK
    assert memory.peak_rss_bytes == memory.inference_peak_rss_bytes


def in_namespace(request: RunRequest, mount: str) -> dict[str, Any]:
    """Run where something is mounted first, and return what the runner says of memory."""
    shell = ("sh", "-c", f'{mount} && exec "$@"', "sh", *runner_words(request))
    done = run(("unshare", "--user", "--map-root-user", "--mount", *shell), timeout_seconds=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    memory: dict[str, Any] = json.loads(done.stdout)["memory"]
    return memory


@pytest.mark.needs("unshare")
def test_a_mark_that_cannot_be_reset(heavy_to_load: RunRequest) -> None:
    """Where /proc is read-only, nothing is said of the memory after loading, and the peak is the kernel's own."""
    memory = in_namespace(heavy_to_load, READ_ONLY)
    assert (memory["peak_source"], memory["inference_peak_rss_bytes"]) == ("VmHWM", None)
    assert memory["peak_rss_bytes"] > 2 * LARGE
    assert memory["loaded_rss_bytes"] > LARGE


@pytest.mark.needs("unshare")
def test_a_machine_without_proc(heavy_to_load: RunRequest) -> None:
    """Without /proc the peak comes from the process's accounts, and what nobody tells is null."""
    memory = in_namespace(heavy_to_load, HIDDEN)
    assert (memory["peak_source"], memory["inference_peak_rss_bytes"]) == ("ru_maxrss", None)
    assert memory["peak_rss_bytes"] > 2 * LARGE
    assert (memory["opened_rss_bytes"], memory["loaded_rss_bytes"]) == (None, None)
