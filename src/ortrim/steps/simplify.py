"""Simplify: onnxslim or onnxsim folds constants and fuses nodes."""

from typing import Final

import onnx

from ortrim.core.step_specs import Simplify
from ortrim.errors import ModelError
from ortrim.pins.tools import step_requirements
from ortrim.steps.isolation import LARGEST_BYTES, ask, load, packaged_python, save
from ortrim.steps.runtime_tools import AFTER, BEFORE
from ortrim.steps.stepped import Stepped, Workplace

SMALL_BYTES: Final = 1 << 16
"""What a model may always grow by: a factor says nothing of a few nodes."""


def simplify(model: onnx.ModelProto, options: Simplify, place: Workplace) -> Stepped:
    """Return the model that the program makes, unless folded constants have swollen it.

    onnxslim works constants out with the full runtime of the buildspec, and without one it folds none, in silence.

    Raises `ModelError`: `model-swollen` for one that grew beyond `most_growth`, and as `ask` does.
    """
    before, after = place.folder / BEFORE, place.folder / AFTER
    save(model, before, place.where)
    size = before.stat().st_size
    most = min(int(size * options.most_growth) + SMALL_BYTES, LARGEST_BYTES)
    request = {"by": options.by, "model": str(before), "output": str(after), "most_bytes": most}
    python = packaged_python(options.by, step_requirements(options.by), place.runtime.packages)
    answer = ask(python, "step_simplify.py", request, place)
    if "swollen" in answer:
        raise _swollen(size, int(answer["swollen"]), options, place.where)
    return Stepped(model=load(after, place))


def _swollen(before: int, after: int, options: Simplify, where: str) -> ModelError:
    what = f"{options.by} made {after:,} bytes of the model's {before:,}: it folded constants that are larger so"
    hint = f"leave the step out, give it optional = true, or allow more: most_growth = {after / before * 1.1:.2g}"
    return ModelError("model-swollen", what, where=where, hint=hint)
