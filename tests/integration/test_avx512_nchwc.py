"""A model in NCHWc layout, block size 16, by the command line: each kernel of `avx512_nchwc.cc` computes for it."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ortrim.base.command import run
from ortrim.errors import ExitCode
from ortrim.inspect.run import inspect_ort
from ortrim.models.convert import CPUINFO

pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 2400.0
SPEC: Final = """\
name = "wide"

[[models]]
name = "wide"
path = "wide.onnx"
level = "all"
layout = "nchwc16"
cases = [{ name = "first", seed = 1 }, { name = "second", seed = 2 }]

[[targets]]
id = "linux-x64"
glibc = "2.28"
cpu = "x86-64-v4"
"""


def convolutional() -> onnx.ModelProto:
    """Return a model with convolutions of a picture, of blocks, depthwise and pointwise, and the three poolings."""
    random = np.random.default_rng(7)
    shapes = {"a": (32, 3, 3, 3), "b": (32, 1, 3, 3), "c": (64, 32, 1, 1), "d": (32, 64, 3, 3)}
    weights = [
        numpy_helper.from_array((random.standard_normal(shape) / 8).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "a"], ["x1"], **window),
        helper.make_node("Relu", ["x1"], ["x2"]),
        helper.make_node("Conv", ["x2", "b"], ["x3"], group=32, **window),
        helper.make_node("Conv", ["x3", "c"], ["x4"], kernel_shape=[1, 1]),
        helper.make_node("MaxPool", ["x4"], ["x5"], strides=[2, 2], **window),
        helper.make_node("AveragePool", ["x5"], ["x6"], count_include_pad=1, **window),
        helper.make_node("AveragePool", ["x6"], ["x7"], count_include_pad=0, **window),
        helper.make_node("Conv", ["x7", "d"], ["x8"], **window),
        helper.make_node("GlobalAveragePool", ["x8"], ["y"]),
    ]
    picture = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 31, 29])
    means = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 1, 1])
    graph = helper.make_graph(nodes, "wide", [picture], [means], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_blocks_of_16_are_in_parity_or_refused_without_avx512(tmp_path: Path) -> None:
    """Weights in blocks of 16 are wrong for every kernel of 8; where there is no AVX-512 nothing can be converted."""
    onnx.save(convolutional(), tmp_path / "wide.onnx")
    (tmp_path / "wide.toml").write_text(SPEC)
    words = ("build", "--json", "--spec", tmp_path / "wide.toml", "--output", tmp_path / "output")
    done = run((sys.executable, "-m", "invoke", *words), cwd=ROOT, timeout_seconds=BUILD_SECONDS)
    if "avx512f" not in CPUINFO.read_text().split():
        assert (done.returncode, "layout-not-here" in done.stderr) == (ExitCode.CONVERT, True)
        return
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (device,) = report["devices"]
    assert len(device["parity"]) > 0
    (model,) = (tmp_path / "output").rglob("wide.ort")
    assert {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool"} <= blocked(model)


def blocked(model: Path) -> set[str]:
    """Return the operators of a converted model that take channels in blocks."""
    return {use.name for use, _ in inspect_ort(model).operators if use.domain == "com.microsoft.nchwc"}
