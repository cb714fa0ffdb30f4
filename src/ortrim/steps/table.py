"""Which function does which step."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import onnx

from ortrim.core.number_steps import (
    Conv1dTo2d,
    ExpandRecurrent,
    Float16,
    FoldBatchNorm,
    FoldInput,
    Optimize,
    Quantize,
)
from ortrim.core.step_choices import StepChoices
from ortrim.core.step_specs import (
    Batch,
    Extract,
    FixDimensions,
    InferShapes,
    Merge,
    NameDimensions,
    Opset,
    Outputs,
    RemoveDead,
    Rename,
    ShareConstants,
    Simplify,
    Strip,
)
from ortrim.errors import Diagnostic
from ortrim.steps.batch import set_batch
from ortrim.steps.conv1d_to_2d import conv1d_to_2d
from ortrim.steps.dimensions import fix_dimensions, name_dimensions
from ortrim.steps.expand_recurrent import expand_recurrent
from ortrim.steps.extract import extract
from ortrim.steps.float16 import float16
from ortrim.steps.fold_batch_norm import fold_batch_norm
from ortrim.steps.fold_input import fold_input
from ortrim.steps.infer_shapes import infer_shapes
from ortrim.steps.isolation import step_failed
from ortrim.steps.merge import merge
from ortrim.steps.opset import to_opset
from ortrim.steps.optimize import optimize
from ortrim.steps.outputs import change_outputs
from ortrim.steps.quantize import quantize
from ortrim.steps.remove_dead import remove_dead
from ortrim.steps.rename import rename
from ortrim.steps.share_constants import share_constants
from ortrim.steps.simplify import simplify
from ortrim.steps.stepped import Stepped, Workplace
from ortrim.steps.strip import strip

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
