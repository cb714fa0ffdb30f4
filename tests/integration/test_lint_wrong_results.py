"""`lint` finds the models that the full runtime computes otherwise when it optimizes them, and no others."""

import numpy as np
import onnx
import onnxruntime
import pytest

from linted_models import facts
from onnx_samples import relu
from ortrim.analysis.lint.rules import RULES
from quantized_nodes import INPUT_SCALE, WEIGHT_SCALE, quantized_convolution, quantized_resize

RIGHT = INPUT_SCALE * WEIGHT_SCALE
MODELS = {
    "no bias": relu(),
    "the scale of the products": quantized_convolution(RIGHT),
    "next to that": quantized_convolution(RIGHT * 1.005),
    "twice that": quantized_convolution(RIGHT * 2),
    "of two channels one": quantized_convolution([RIGHT, RIGHT * 3]),
    "of two channels none": quantized_convolution([RIGHT, RIGHT]),
    "before Relu, which quantizing does as well": quantized_convolution(0.5, "Relu", output_zero=0),
    "before Relu": quantized_convolution(0.5, "Relu"),
    "before Sigmoid, which is no convolution's": quantized_convolution(0.5, "Sigmoid"),
    **{f"resize, {mode}": quantized_resize(mode) for mode in ("nearest", "linear", "cubic")},
}


def outputs(model: onnx.ModelProto, level: onnxruntime.GraphOptimizationLevel) -> np.ndarray | None:
    """Return what the model gives for some numbers; None when it fails."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    numbers = np.random.default_rng(3).uniform(0, 2, given.shape).astype(np.float32)
    try:
        (found,) = session.run(None, {given.name: numbers})
    except onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException:
        return None
    return np.asarray(found)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_found_is_what_differs(name: str) -> None:
    model = MODELS[name]
    levels = onnxruntime.GraphOptimizationLevel
    plain, optimized = outputs(model, levels.ORT_DISABLE_ALL), outputs(model, levels.ORT_ENABLE_ALL)
    assert plain is not None
    differs = optimized is None or float(np.abs(plain - optimized).max()) > 0.06  # more than one step of the output
    known = facts(model)
    found = {rule.code for rule in RULES if list(rule.check(known))}
    assert bool(found & {"bias-of-another-scale", "resize-of-integers"}) == differs


@pytest.mark.parametrize("emptied", ["input", "output"])
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear", "Conv", "Relu", "Resize"])
def test_nodes_that_lack_inputs_or_outputs_are_read(operator: str, emptied: str) -> None:
    """Such a model is no model, which another rule says; none of them fails."""
    for model in (quantized_convolution(0.5, "Relu", output_zero=0), quantized_resize("linear")):
        for node in (each for each in model.graph.node if each.op_type == operator):
            del getattr(node, emptied)[:]
        known = facts(model)
        for rule in RULES:
            list(rule.check(known))
