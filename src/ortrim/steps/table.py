"""Which function does which step."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import onnx

from ortrim.buildspec import step_specs
from ortrim.errors import Diagnostic
from ortrim.steps import inputs_outputs
from ortrim.steps.conv1d_to_2d import conv1d_to_2d
from ortrim.steps.fold_batch_norm import fold_batch_norm
from ortrim.steps.fold_input import fold_input
from ortrim.steps.recurrent import expand_recurrent
from ortrim.steps.remove import remove_dead, share_constants, strip
from ortrim.steps.runtime_tools import float16, infer_shapes, optimize, quantize, simplify, to_opset
from ortrim.steps.step import Stepped, Workplace, step_failed

PLAIN: Final[Mapping[type[step_specs.StepChoices], Callable[[onnx.ModelProto, Any], Stepped]]] = {
    step_specs.NameDimensions: inputs_outputs.name_dimensions,
    step_specs.Strip: strip,
    step_specs.Rename: inputs_outputs.rename,
    step_specs.ShareConstants: share_constants,
    step_specs.RemoveDead: remove_dead,
    step_specs.FoldInput: fold_input,
    step_specs.Conv1dTo2d: conv1d_to_2d,
    step_specs.ExpandRecurrent: expand_recurrent,
    step_specs.FoldBatchNorm: fold_batch_norm,
}
"""Steps that need nothing but the model, which they may change in place."""

EQUIPPED: Final[Mapping[type[step_specs.StepChoices], Callable[[onnx.ModelProto, Any, Workplace], Stepped]]] = {
    step_specs.Simplify: simplify,
    step_specs.InferShapes: infer_shapes,
    step_specs.FixDimensions: inputs_outputs.fix_dimensions,
    step_specs.Batch: inputs_outputs.set_batch,
    step_specs.Opset: to_opset,
    step_specs.Extract: inputs_outputs.extract,
    step_specs.Outputs: inputs_outputs.change_outputs,
    step_specs.Merge: inputs_outputs.merge,
    step_specs.Float16: float16,
    step_specs.Quantize: quantize,
    step_specs.Optimize: optimize,
}
"""Steps that start other programs, or look at the cases."""


def take_step(model: onnx.ModelProto, choices: step_specs.StepChoices, place: Workplace) -> Stepped:
    """Do one step to a model, which it may change in place."""
    kind = type(choices)
    try:
        return PLAIN[kind](model, choices) if kind in PLAIN else EQUIPPED[kind](model, choices, place)
    except Diagnostic as error:
        error.where = error.where or place.where
        raise
    except Exception as error:  # onnx's tools raise all kinds of errors about models
        what = "the step cannot be done to this model"
        raise step_failed(what, place.where, why=f"{type(error).__name__}: {error}") from error
