"""Convolutions and pooling along one axis as such along two: all of them, whatever the layout."""

import onnx

from ortrim.buildspec.step_specs import Conv1dTo2d
from ortrim.models.two_axes import with_two_axes
from ortrim.steps.step import Stepped


def conv1d_to_2d(model: onnx.ModelProto, options: Conv1dTo2d) -> Stepped:  # noqa: ARG001 - as all steps
    """Make convolutions and pooling along one axis two-dimensional, as `with_two_axes` does."""
    return Stepped(model=model, notes=with_two_axes(model))
