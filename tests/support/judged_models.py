"""Runtimes and models for judging, without files."""

from typing import Any, Final

import onnx
from hypothesis import strategies as st
from onnx import helper

from onnx_samples import model_of, value
from ortrim.analysis.compat_runtime import InstalledRuntime
from ortrim.models.operators import GLOBAL_TYPES, ModelUses, OperatorId, OperatorUse, parse_config


def runtime(config: str, **facts: Any) -> InstalledRuntime:
    return InstalledRuntime(label="theirs", ort_version="1.21.0", operators=parse_config(config), **facts)


def changed(config: str, lines: str, replacement: str) -> str:
    there = config.splitlines(keepends=True)
    kept = [replacement if replacement and line.startswith(GLOBAL_TYPES) else line for line in there]
    return "".join((*kept, lines))


def use(name: str, opset: int, *types: str, domain: str = "ai.onnx", outputs: tuple[str, ...] = ()) -> OperatorUse:
    """Return one use of an operator, of floats unless said otherwise; its node is called `a <operator>`."""
    operator = OperatorId(domain=domain, opset=opset, name=name)
    return OperatorUse(operator=operator, inputs=types or ("float",), outputs=outputs, node=f"a {name}")


def model(*uses: OperatorUse) -> ModelUses:
    return ModelUses(format_version="6", uses=tuple(sorted(uses)))


TYPES = ("", "float", "double", "int64_t", "bool", "std::string")
NAMES = ("Add", "Cast", "Concat", "Gather", "OneHot", "Relu", "Reshape", "Transpose", "Where")

uses = st.builds(
    use,
    st.sampled_from(NAMES),
    st.integers(11, 14),
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    st.sampled_from(TYPES),
    outputs=st.tuples(st.sampled_from(TYPES)),
)
models = st.lists(uses, max_size=6).map(lambda found: model(*found))
limits = st.dictionaries(
    st.sampled_from(NAMES),
    st.tuples(st.sampled_from(TYPES[1:]), st.integers(11, 14)),
    max_size=5,
)
configs = limits.map(
    lambda found: "".join(
        f"ai.onnx;{opset};{name}"
        + (
            f'{{"custom": [["{kind}", "{kind}", "{kind}"]]}}\n'
            if name == "OneHot"
            else f'{{"inputs": {{"0": ["{kind}"]}}}}\n'
        )
        for name, (kind, opset) in found.items()
    )
)
global_configs = st.tuples(st.sets(st.sampled_from(TYPES[1:]), min_size=1), st.sets(st.sampled_from(NAMES))).map(
    lambda drawn: (
        f"!globally_allowed_types;{','.join(sorted(drawn[0]))}\n"
        + (
            f"ai.onnx;13;{','.join(sorted(drawn[1]))}\n"
            if drawn[1]
            else "!no_ops_specified_means_all_ops_are_required\n"
        )
    )
)


DEMO: Final = """\
ai.onnx;13;Gemm{"inputs": {"0": ["float"]}}
ai.onnx;14;Relu{"inputs": {"0": ["float"]}}
"""
"""A configuration with two operators."""


def fused() -> onnx.ModelProto:
    """Return a model of two operators that the demo has and the optimizer joins."""
    nodes = [helper.make_node("Gemm", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    return model_of(nodes, [value("x", shape=(2, 2)), value("w", shape=(2, 2))], [value("y", shape=(2, 2))])
