"""Numbers of 16 bits in the place of those of 32."""

from typing import Final

import numpy as np
import onnx
from onnx import TensorProto

from ortrim.core.number_steps import Float16
from ortrim.steps.runtime_tools import accuracy, python_with_onnx, rewritten
from ortrim.steps.stepped import Feeding, Feeds, Stepped, Workplace

SCRIPT: Final = "step_float16.py"


def float16(model: onnx.ModelProto, options: Float16, place: Workplace) -> Stepped:
    """Convert by ONNX Runtime's own converter, and say how far the outputs of the cases then are from before.

    Raises `ModelError` (`step-failed`) when the model does not run afterwards, too: not every CPU kernel takes float16.
    """
    request = {
        "keep_io_types": options.keep_io_types,
        "blocked_operators": None if options.blocked_operators is None else list(options.blocked_operators),
        "blocked_nodes": list(options.blocked_nodes),
    }
    made, answer = rewritten(model, SCRIPT, request, place, python=python_with_onnx(place))
    stayed = (f"at 32 bits stayed: {', '.join(answer['blocked'])}",) if answer["blocked"] else ()
    changed = _narrowed(model.graph, made.graph)
    return Stepped(model=made, notes=(*stayed, *accuracy(place)), feeding=_feeding(changed) if changed else None)


def _narrowed(before: onnx.GraphProto, after: onnx.GraphProto) -> frozenset[str]:
    """Return the inputs that are of 16 bits now and were not."""
    half = {value.name for value in after.input if value.type.tensor_type.elem_type == TensorProto.FLOAT16}
    return frozenset(half - {v.name for v in before.input if v.type.tensor_type.elem_type == TensorProto.FLOAT16})


def _feeding(names: frozenset[str]) -> Feeding:
    def forward(feeds: Feeds) -> Feeds:
        return {name: array.astype(np.float16) if name in names else array for name, array in feeds.items()}

    def back(feeds: Feeds) -> Feeds:
        return {name: feeds[name].astype(np.float32) for name in names}

    return Feeding(forward=forward, back=back)
