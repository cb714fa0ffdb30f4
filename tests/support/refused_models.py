"""Models that the full runtime refuses, by the cause, and what each hint says to do about it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter

from onnx_samples import model_of, value, write

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Change = Callable[[onnx.ModelProto], onnx.ModelProto]


def sparse(shape: tuple[int, int], name: str = "w") -> onnx.SparseTensorProto:
    values = helper.make_tensor(name, FLOAT, [3], [1.0] * 3)
    return helper.make_sparse_tensor(values, helper.make_tensor(f"{name}_at", INT64, [3], [0, 1, 2]), shape)


def with_sparse(model: onnx.ModelProto, shape: tuple[int, int]) -> onnx.ModelProto:
    model.graph.sparse_initializer.append(sparse(shape))
    return model


def normalizer() -> onnx.ModelProto:
    """Return a model that needs a locale which no machine has."""
    node = helper.make_node("StringNormalizer", ["x"], ["y"], case_change_action="LOWER", locale="xx_XX")
    return model_of([node], [value("x", TensorProto.STRING, (3,))], [value("y", TensorProto.STRING, (None,))])


def shrinking(operator: str = "Upsample") -> onnx.ModelProto:
    """Return a model that makes an image half as large by an operator of opset 9."""
    scales = numpy_helper.from_array(np.array([1, 1, 0.5, 0.5], np.float32), "scales")
    node = helper.make_node(operator, ["x", "scales"], ["y"], mode="nearest")
    ends = [value("x", shape=(1, 1, 4, 4))], [value("y", shape=(1, 1, 2, 2))]
    return model_of([node], *ends, opsets=[("", 9)], initializers=[scales])


def shrinking_when_run() -> onnx.ModelProto:
    """Return one that loads and does not run: the scales are computed."""
    model = shrinking()
    model.graph.initializer[0].name = "given"
    model.graph.node.insert(0, helper.make_node("Abs", ["given"], ["scales"]))
    model.graph.input.append(value("given", shape=(4,)))
    return model


def quantized(opset: int, kind: type[np.generic], domain: str = "") -> onnx.ModelProto:
    constants = [
        numpy_helper.from_array(np.array(0.5, np.float32), "scale"),
        numpy_helper.from_array(np.array(0, kind), "zero"),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], domain=domain),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"], domain=domain),
    ]
    return model_of(nodes, opsets=[("", opset), ("com.microsoft", 1)], initializers=constants, ir_version=9)


def sparse_operand() -> onnx.ModelProto:
    node = helper.make_node("SparseToDenseMatMul", ["w", "x"], ["y"], domain="com.microsoft")
    ends = [value("x", shape=(4, 4))], [value("y", shape=(4, 4))]
    return with_sparse(model_of([node], *ends, opsets=[("", 17), ("com.microsoft", 1)]), (4, 4))


def huge(*, constant: bool, side: int = 2**20) -> onnx.ModelProto:
    """Return a model of a few hundred bytes with a sparse matrix of terabytes, or of more than can be counted."""
    nodes = [helper.make_node("Constant", [], ["w"], sparse_value=sparse((side, side), ""))] if constant else []
    nodes += [
        helper.make_node("Size", ["w"], ["a"]),
        helper.make_node("Cast", ["a"], ["b"], to=FLOAT),
        helper.make_node("Add", ["x", "b"], ["y"]),
    ]
    model = model_of(nodes)
    return model if constant else with_sparse(model, (side, side))


def split(parts: int) -> onnx.ModelProto:
    names = [f"y{number}" for number in range(parts)]
    sizes = numpy_helper.from_array(np.ones(parts, np.int64), "sizes")
    node = helper.make_node("Split", ["x", "sizes"], names, axis=0)
    outputs = [value(name) for name in names]
    return model_of([node], [value("x", shape=(parts,))], outputs, initializers=[sizes])


def wrapped() -> onnx.ModelProto:
    """Return a model that makes an optional value of its input, and takes it out."""
    nodes = [helper.make_node("Optional", ["x"], ["a"]), helper.make_node("OptionalGetElement", ["a"], ["y"])]
    return model_of(nodes, opsets=[("", 18)])


def unwrapped() -> onnx.ModelProto:
    return model_of([helper.make_node("OptionalGetElement", ["x"], ["y"])], opsets=[("", 18)])


BIG: Final = 2**42
"""Floats that no machine has room for."""


def sized(*, count: int = BIG, own: bool = False) -> onnx.ModelProto:
    """Return a model that makes a vector of a constant's size: when it is loaded, or of an input's `own`, when run."""
    given = "Shape(x)" if own else "Constant <value = int64[1] {1}>()"
    text = f"""
        <ir_version: 8, opset_import: ["" : 17]>
        m (float[n] x) => (float[n] y) {{
            one = {given}
            count = Constant <value = int64[1] {{{count}}}>()
            size = Mul(one, count)
            zeros = ConstantOfShape(size)
            mean = ReduceMean <keepdims = 0>(zeros)
            y = Add(x, mean)
        }}"""
    return onnx.parser.parse_model(text)


def beside(path: Path, model: onnx.ModelProto) -> Path:
    """Write a model with all constants in another file."""
    onnx.save(model, path, save_as_external_data=True, location=f"{path.stem}.data", size_threshold=0)
    return path


def to_c_locale(model: onnx.ModelProto) -> onnx.ModelProto:
    for attribute in model.graph.node[0].attribute:
        if attribute.name == "locale":
            attribute.s = b"C"
    return model


def to_opset(version: int) -> Change:
    """Apply the hint that names `onnx.version_converter`."""
    return lambda model: version_converter.convert_version(model, version)


def to_microsoft(model: onnx.ModelProto) -> onnx.ModelProto:
    for node in model.graph.node:
        node.domain = "com.microsoft"
    return model


def to_matmul(model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.node[0].op_type, model.graph.node[0].domain = "MatMul", ""
    return model


def to_dense(model: onnx.ModelProto) -> onnx.ModelProto:
    weights = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")
    return model_of(model.graph.node[-3:], initializers=[weights])


def as_it_is(model: onnx.ModelProto) -> onnx.ModelProto:
    """Leave a model, which is then written as one file."""
    return model


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A model that is refused for a cause, and what its hint says to do, each way by itself."""

    code: str
    model: Callable[[], onnx.ModelProto]
    changes: tuple[Change, ...]
    write: Callable[[Path, onnx.ModelProto], Path] = write
    ways: int = 1
    """In how many ways ONNX Runtime says it: when it folds constants it says less than when it runs."""


REFUSED: Final = {
    "locale": Refused(code="locale-missing", model=normalizer, changes=(to_c_locale,)),
    "upsample": Refused(code="upsample-shrinks", model=shrinking, changes=(to_opset(17), to_opset(10))),
    **{
        f"{kind.__name__} of opset {opset}": Refused(
            code="quantize-16-bits",
            model=lambda kind=kind, opset=opset: quantized(opset, kind),  # type: ignore[misc]
            changes=(to_opset(21), to_microsoft),
        )
        for kind, opset in ((np.uint16, 13), (np.int16, 19))
    },
    "sparse operand": Refused(code="sparse-operand", model=sparse_operand, changes=(to_matmul,)),
    "sparse constant": Refused(code="weights-exceed-memory", model=lambda: huge(constant=True), changes=(to_dense,)),
    "sparse weights": Refused(code="weights-exceed-memory", model=lambda: huge(constant=False), changes=(to_dense,)),
    "countless": Refused(
        code="weights-exceed-memory", model=lambda: huge(constant=False, side=2**31), changes=(to_dense,)
    ),
    "folded size": Refused(code="values-exceed-memory", model=sized, changes=(lambda _: sized(count=8),), ways=2),
    "large shape": Refused(code="external-shape", model=lambda: split(600), changes=(as_it_is,), write=beside),
}


def dividing() -> onnx.ModelProto:
    zero = numpy_helper.from_array(np.zeros(1, np.int32), "zero")
    ends = [value("x", TensorProto.FLOAT)], [value("y", TensorProto.INT32)]
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.INT32),
        helper.make_node("Div", ["a", "zero"], ["y"]),
    ]
    return model_of(nodes, *ends, initializers=[zero])
