"""The execution provider XNNPACK: compiled for each system, in parity, and really running the nodes that it can."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bionic_machine import bionic_machine, find_bionic
from ortrim.base.command import run

pytestmark = [pytest.mark.build, pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 1800.0
SPEC: Final = """\
name = "every-operator"
providers = ["xnnpack"]

[[models]]
name = "every-operator"
path = "model.onnx"
style = "runtime"

[[targets]]
id = "{target}"
{minimum}
"""
GLIBC: Final = 'glibc = "2.28"'
"""As the demo has it, whose compiled sources serve here, too."""
TAKEN: Final = 10
"""The nodes of the model that XNNPACK has kernels of: all but Relu, Clip, Flatten, a Gemm without C and the MaxPool of
8-bit integers."""


def model(path: Path) -> None:
    """Write a model with each operator of floats that XNNPACK has kernels of, and others."""
    random = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> TensorProto:
        values = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        return numpy_helper.from_array(values.astype(np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w2"], ["c"], pads=[1, 1, 1, 1], group=16),
        helper.make_node("Clip", ["c", "low", "high"], ["d"]),
        helper.make_node("Conv", ["d", "w3"], ["e"]),
        helper.make_node("MaxPool", ["e"], ["f"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("ConvTranspose", ["f", "w4"], ["g"], strides=[2, 2], kernel_shape=[2, 2]),
        helper.make_node("Resize", ["g", "", "scales"], ["h"], mode="linear"),
        helper.make_node("AveragePool", ["h"], ["i"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("Flatten", ["i"], ["j"]),
        helper.make_node("Gemm", ["j", "w5", "b5"], ["k"], transB=1),
        helper.make_node("MatMul", ["k", "w6"], ["l"]),
        helper.make_node("Gemm", ["l", "w7"], ["m"]),
        helper.make_node("Softmax", ["m"], ["y"], axis=-1),
        helper.make_node("MaxPool", ["u"], ["v"], kernel_shape=[2, 2], strides=[2, 2]),
    ]
    initializers = [
        *(weights("w1", 16, 3, 3, 3), weights("b1", 16), weights("w2", 16, 1, 3, 3), weights("w3", 24, 16, 1, 1)),
        *(weights("w4", 24, 8, 2, 2), weights("w5", 12, 8 * 8 * 8), weights("b5", 12), weights("w6", 12, 7)),
        weights("w7", 7, 7),
        *(numpy_helper.from_array(np.array(value, np.float32), name) for name, value in (("low", 0.0), ("high", 6.0))),
        numpy_helper.from_array(np.array([1, 1, 2, 2], np.float32), "scales"),
    ]
    graph = helper.make_graph(
        nodes,
        "every-operator",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32]),
            helper.make_tensor_value_info("u", TensorProto.UINT8, [1, 3, 8, 8]),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 7]),
            helper.make_tensor_value_info("v", TensorProto.UINT8, [1, 3, 4, 4]),
        ],
        initializers,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def nodes_on_xnnpack(target: str, folder: Path, *options: str, **environment: str) -> list[int]:
    """Build the model for a target, in parity, and return how many nodes XNNPACK ran, a number for each device."""
    model(folder / "model.onnx")
    (folder / "spec.toml").write_text(SPEC.format(target=target, minimum=GLIBC if "linux" in target else ""))
    words = ("build", "--spec", str(folder / "spec.toml"), "--target", target, "--json", *options)
    done = run(
        (sys.executable, "-m", "invoke", *words, "--output", str(folder / "output")),
        cwd=ROOT,
        environment={**os.environ, **environment},
        timeout_seconds=BUILD_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any]
    (report,) = json.loads(done.stdout)["reports"]
    assert report["verdict"] == "pass"
    assert report["devices"]
    return [placed["nodes"]["XnnpackExecutionProvider"] for each in report["devices"] for placed in each["placements"]]


@pytest.mark.parametrize(
    "target", ["linux-x64", pytest.param("linux-arm64", marks=pytest.mark.needs("qemu-aarch64-static"))]
)
def test_xnnpack_runs_every_operator_that_it_has_kernels_of(target: str, tmp_path: Path) -> None:
    """In parity with the full runtime's own kernels; the provider's part is counted in a profile of the library."""
    assert set(nodes_on_xnnpack(target, tmp_path)) == {TAKEN}


@pytest.mark.needs("adb", "apt-get", "dpkg-deb", "unshare", "bionic-binaries")
def test_it_does_on_bionic(tmp_path: Path) -> None:
    """Android's own linker and C library, which `ORTRIM_BIONIC` names, through adb."""
    bionic = find_bionic()
    assert bionic is not None
    with bionic_machine(bionic, bionic.cpus[-1]) as machine:
        socket = machine.client.environment["ADB_SERVER_SOCKET"]
        device = ("--device", f"adb:{machine.serials[0]}")
        nodes = nodes_on_xnnpack(f"android-{bionic.abi}", tmp_path, *device, ADB_SERVER_SOCKET=socket)
    assert nodes == [TAKEN]
