"""Int8 GEMM and convolutions of a trimmed library compute what int32 arithmetic does, on this machine's processor."""

import json
import sys
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

from ortrim.base.command import run
from ortrim.models.convert import CPUINFO

pytestmark = [pytest.mark.slow, pytest.mark.build, pytest.mark.network]

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 2400.0
SPEC: Final = """\
name = "int8"

[[models]]
name = "int8"
path = "int8.onnx"
level = "basic"
cases = [{ name = "given", data = "int8.npz" }]

[[targets]]
id = "linux-x64"
glibc = "2.28"
"""
Matrix = NDArray[np.uint8] | NDArray[np.int8]
ROWS: Final = (*range(1, 14), 24, 31, 32, 33, 40)
DEPTHS: Final = (1, 7, 64, 207)
COLUMNS: Final = (1, 16, 30, 65)
"""Of matrices. Upstream's pull request 27671 names 30 columns and a depth of 207."""
WINDOW: Final = 3


def signs() -> tuple[tuple[type, type], ...]:
    """Return the types of operands and weights that this machine multiplies exactly; mixed signs need VNNI."""
    exact = not {"avx512_vnni", "avx_vnni"}.isdisjoint(CPUINFO.read_text().split())
    return ((np.uint8, np.uint8), (np.int8, np.int8), *(((np.uint8, np.int8),) if exact else ()))


class Products:
    """A model of many products of full range; `outputs` are what they come to, by name."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(8)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: dict[str, NDArray[Any]] = {}
        self.outputs: dict[str, NDArray[np.int32]] = {}

    def numbers(self, kind: type, *shape: int) -> Matrix:
        """Return numbers of a type's whole range, its ends among them more often than not."""
        limits = np.iinfo(kind)
        drawn = self.random.integers(limits.min - 100, limits.max + 101, shape)
        clipped: Matrix = np.clip(drawn, limits.min, limits.max).astype(kind)
        return clipped

    def add(
        self, operator: str, fed: Matrix, weights: Matrix, zeros: tuple[Matrix, Matrix], wanted: NDArray[np.int32]
    ) -> None:
        name = f"n{len(self.outputs)}"
        self.inputs[f"{name}a"] = fed
        constants = {"b": weights, "c": zeros[0], "d": zeros[1]}
        self.weights += [numpy_helper.from_array(value, f"{name}{end}") for end, value in constants.items()]
        self.nodes.append(helper.make_node(operator, [f"{name}{end}" for end in "abcd"], [name]))
        self.outputs[name] = wanted

    def add_matrices(self, rows: int, depth: int, columns: int, kinds: tuple[type, type]) -> None:
        fed, weights = self.numbers(kinds[0], rows, depth), self.numbers(kinds[1], depth, columns)
        zeros = self.numbers(kinds[0]), self.numbers(kinds[1], columns)
        wanted = (fed.astype(np.int32) - zeros[0]) @ (weights.astype(np.int32) - zeros[1])
        self.add("MatMulInteger", fed, weights, zeros, wanted)

    def add_convolution(self, channels: int, filters: int, size: int) -> None:
        fed, weights = self.numbers(np.uint8, 1, channels, size, size), self.numbers(np.uint8, filters, channels, 3, 3)
        zeros = self.numbers(np.uint8), self.numbers(np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(fed.astype(np.int32) - zeros[0], (WINDOW, WINDOW), (2, 3))
        wanted = np.einsum("bcyxij,fcij->bfyx", windows, weights.astype(np.int32) - zeros[1])
        self.add("ConvInteger", fed, weights, zeros, wanted)

    def save(self, folder: Path) -> None:
        kinds = {name: helper.np_dtype_to_tensor_dtype(value.dtype) for name, value in self.inputs.items()}
        graph = helper.make_graph(
            self.nodes,
            "int8",
            [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in self.inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.INT32, None) for name in self.outputs],
            self.weights,
        )
        onnx.save(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "int8.onnx"
        )
        np.savez(folder / "int8.npz", allow_pickle=False, **self.inputs)
        (folder / "int8.toml").write_text(SPEC)


def test_int8_products_are_exact(tmp_path: Path) -> None:
    """The official library's are here, and the trimmed one's are the same to the last bit."""
    products = Products()
    for rows, kinds in product(ROWS, signs()):
        depth, columns = DEPTHS[rows % len(DEPTHS)], COLUMNS[rows // 4 % len(COLUMNS)]
        products.add_matrices(rows, depth, columns, kinds)
        products.add_matrices(rows, 207, 30, kinds)
    for channels, filters, size in ((1, 24, 8), (3, 8, 9), (23, 30, 15), (48, 33, 9)):
        products.add_convolution(channels, filters, size)
    products.save(tmp_path)
    session = InferenceSession(tmp_path / "int8.onnx", providers=["CPUExecutionProvider"])
    for name, got in zip(products.outputs, session.run(None, products.inputs), strict=True):
        np.testing.assert_array_equal(got, products.outputs[name], name)
    words = ("build", "--json", "--spec", tmp_path / "int8.toml", "--output", tmp_path / "output")
    done = run((sys.executable, "-m", "invoke", *words), cwd=ROOT, timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (device,) = report["devices"]
    assert [parity["max_absolute"] for parity in device["parity"]] == [0.0] * len(products.outputs)
