"""Models that the full runtime refuses, by the cause, and what each hint says to do about it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import onnx.parser
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


def parsed(text: str, opset: int = 17, ir_version: int = 8) -> onnx.ModelProto:
    head = f'<ir_version: {ir_version}, opset_import: ["": {opset}, "com.microsoft": 1]>'
    return onnx.parser.parse_model(f"{head} graph {text}")


def normalizer() -> onnx.ModelProto:
    """Return a model that needs a locale which no machine has."""
    node = 'y = StringNormalizer <case_change_action = "LOWER", locale = "xx_XX"> (x)'
    return parsed(f"(string[3] x) => (string[?] y) {{ {node} }}")


def shrinking() -> onnx.ModelProto:
    """Return a model that makes an image half as large by an operator of opset 9."""
    ends = "(float[1, 1, 4, 4] x) => (float[1, 1, 2, 2] y) <float[4] scales = {1, 1, 0.5, 0.5}>"
    return parsed(f'{ends} {{ y = Upsample <mode = "nearest"> (x, scales) }}', 9)


def shrinking_when_run() -> onnx.ModelProto:
    """Return one that loads and does not run: the scales are computed."""
    model = shrinking()
    model.graph.initializer[0].name = "given"
    model.graph.node.insert(0, helper.make_node("Abs", ["given"], ["scales"]))
    model.graph.input.append(value("given", shape=(4,)))
    return model


def quantized(opset: int, kind: str) -> onnx.ModelProto:
    constants = f"<float scale = {{0.5}}, {kind} zero = {{0}}>"
    nodes = "q = QuantizeLinear (x, scale, zero) y = DequantizeLinear (q, scale, zero)"
    return parsed(f"(float[1] x) => (float[1] y) {constants} {{ {nodes} }}", opset, 9)


def sparse_operand() -> onnx.ModelProto:
    text = "(float[4, 4] x) => (float[4, 4] y) { y = com.microsoft.SparseToDenseMatMul (w, x) }"
    return with_sparse(parsed(text), (4, 4))


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
    names = ", ".join(f"y{number}" for number in range(parts))
    outputs = names.replace("y", "float[1] y")
    text = f"(float[{parts}] x) => ({outputs}) {{ {names} = Split <axis = 0> (x, sizes) }}"
    model = parsed(text)
    model.graph.initializer.append(
        numpy_helper.from_array(np.ones(parts, np.int64), "sizes")
    )  # onnx.save moves raw data
    return model


def wrapped() -> onnx.ModelProto:
    """Return a model that makes an optional value of its input, and takes it out."""
    return parsed("(float[1] x) => (float[1] y) { a = Optional (x) y = OptionalGetElement (a) }", 18)


def unwrapped() -> onnx.ModelProto:
    return parsed("(float[1] x) => (float[1] y) { y = OptionalGetElement (x) }", 18)


BIG: Final = 2**42
"""Floats that no machine has room for."""


def sized(*, count: int = BIG, own: bool = False) -> onnx.ModelProto:
    """Return a model that makes a vector of a constant's size: when it is loaded, or of an input's `own`, when run."""
    given = "Shape(x)" if own else "Constant <value = int64[1] {1}>()"
    text = f"""
        (float[n] x) => (float[n] y) {{
            one = {given}
            count = Constant <value = int64[1] {{{count}}}>()
            size = Mul(one, count)
            zeros = ConstantOfShape(size)
            mean = ReduceMean <keepdims = 0>(zeros)
            y = Add(x, mean)
        }}"""
    return parsed(text)


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
        f"{kind} of opset {opset}": Refused(
            code="quantize-16-bits",
            model=lambda kind=kind, opset=opset: quantized(opset, kind),  # type: ignore[misc]
            changes=(to_opset(21), to_microsoft),
        )
        for kind, opset in (("uint16", 13), ("int16", 19))
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
    nodes = "a = Cast <to = 6> (x) y = Div (a, zero)"
    return parsed(f"(float[1] x) => (int32[1] y) <int32[1] zero = {{0}}> {{ {nodes} }}")
