"""Which function does which step."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import onnx

from ortrim.buildspec.step_specs import (
    Batch,
    Conv1dTo2d,
    ExpandRecurrent,
    Extract,
    FixDimensions,
    Float16,
    FoldBatchNorm,
    FoldInput,
    InferShapes,
    Merge,
    NameDimensions,
    Opset,
    Optimize,
    Outputs,
    Quantize,
    RemoveDead,
    Rename,
    ShareConstants,
    Simplify,
    StepChoices,
    Strip,
)
from ortrim.errors import Diagnostic
from ortrim.steps.conv1d_to_2d import conv1d_to_2d
from ortrim.steps.fold_batch_norm import fold_batch_norm
from ortrim.steps.fold_input import fold_input
from ortrim.steps.inputs_outputs import change_outputs, extract, fix_dimensions, name_dimensions, rename, set_batch
from ortrim.steps.onnx_tools import infer_shapes
from ortrim.steps.opset import merge, to_opset
from ortrim.steps.recurrent import expand_recurrent
from ortrim.steps.remove import remove_dead, share_constants, strip
from ortrim.steps.runtime_tools import float16, optimize, quantize, simplify
from ortrim.steps.step import Stepped, Workplace, step_failed

PLAIN: Final[Mapping[type[StepChoices], Callable[[onnx.ModelProto, Any], Stepped]]] = {
    NameDimensions: name_dimensions,
    Strip: strip,
    Rename: rename,
    ShareConstants: share_constants,
    RemoveDead: remove_dead,
    FoldInput: fold_input,
    Conv1dTo2d: conv1d_to_2d,
    ExpandRecurrent: expand_recurrent,
    FoldBatchNorm: fold_batch_norm,
}
"""Steps that need nothing but the model, which they may change in place."""

EQUIPPED: Final[Mapping[type[StepChoices], Callable[[onnx.ModelProto, Any, Workplace], Stepped]]] = {
    Simplify: simplify,
    InferShapes: infer_shapes,
    FixDimensions: fix_dimensions,
    Batch: set_batch,
    Opset: to_opset,
    Extract: extract,
    Outputs: change_outputs,
    Merge: merge,
    Float16: float16,
    Quantize: quantize,
    Optimize: optimize,
}
"""Steps that start other programs, or look at the cases."""


def take_step(model: onnx.ModelProto, choices: StepChoices, place: Workplace) -> Stepped:
    """Do one step to a model, which it may change in place.

    Raises `ModelError` (`step-failed` and others) when it cannot be done, and what starting other programs raises.
    """
    kind = type(choices)
    try:
        return PLAIN[kind](model, choices) if kind in PLAIN else EQUIPPED[kind](model, choices, place)
    except Diagnostic as error:
        error.where = error.where or place.where
        raise
    except Exception as error:  # onnx's tools raise all kinds of errors about models
        what = "the step cannot be done to this model"
        raise step_failed(what, place.where, why=f"{type(error).__name__}: {error}") from error
