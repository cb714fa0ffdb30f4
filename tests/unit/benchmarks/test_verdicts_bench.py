"""The models with which verdicts are tried: whole, many, and the same in every run."""

from itertools import islice

import onnx
from verdicts import OPSETS, PATTERNS, TYPES, drawn, made

from judged_models import runtime


def test_models_are_well_formed() -> None:
    """Of every pattern, in an opset that it is for."""
    for pattern in PATTERNS:
        opset = next(each for each in reversed(OPSETS) if pattern.opsets[0] <= each <= pattern.opsets[1])
        model = made(pattern, "BOOL" if pattern.name == "Not" else "FLOAT", opset)
        assert onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True).graph.output
        assert [node.op_type for node in model.graph.node] == [pattern.name]


def test_only_operators_of_the_runtime_are_drawn() -> None:
    """Of others the verdict would be no art."""
    models = dict(drawn(runtime("ai.onnx;14;Relu\nai.onnx;13;Where\n"), 0))
    assert {model.graph.node[0].op_type for model in models.values()} == {"Relu", "Where"}
    assert len(models) == 2 * len(OPSETS) * len(TYPES)


def test_a_seed_gives_the_same_models() -> None:
    """And another one others."""
    installed = runtime("ai.onnx;14;Relu\n")
    one, same, other = (list(islice(dict(drawn(installed, seed)), 20)) for seed in (1, 1, 2))
    assert one == same != other
