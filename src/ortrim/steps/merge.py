"""Merge: another model appended to this one."""

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import compose

from ortrim.core.step_specs import Merge
from ortrim.errors import ModelError
from ortrim.steps.dimensions import fed_inputs
from ortrim.steps.isolation import step_failed
from ortrim.steps.stepped import Appended, Stepped, Workplace


def merge(model: onnx.ModelProto, options: Merge, place: Workplace) -> Stepped:
    """Append by onnx.compose; outputs that feed the other model are none any more.

    Raises `ModelError` (`step-failed`): for inputs of the other model that nothing feeds, names that both have, and
    opsets that differ.
    """
    other = _read(place.base / options.path, place.where)
    sources = {given: source for source, given in options.connect.items()}
    unfed = [value.name for value in fed_inputs(other) if value.name not in sources]
    if unfed:
        raise step_failed(f"nothing feeds the input '{unfed[0]}' of '{options.path}'", hint="name it in 'connect'")
    appended = onnx.ModelProto()
    appended.CopyFrom(other)
    model.ir_version = other.ir_version = max(model.ir_version, other.ir_version)
    pairs = [(source, given) for given, source in sources.items()]
    try:
        made = compose.merge_models(model, other, pairs, prefix2=options.prefix or None)
    except ValueError as error:
        hint = "give it a 'prefix' for names that both have; give this model the other's opset by a step before"
        raise step_failed(f"'{options.path}' cannot be appended", place.where, why=str(error), hint=hint) from error
    return Stepped(model=made, appended=Appended(model=appended, connect=sources, prefix=options.prefix))


def _read(path: Path, where: str) -> onnx.ModelProto:
    try:
        return onnx.load_model(path, format="protobuf")
    except (OSError, DecodeError, ValueError, onnx.checker.ValidationError) as error:
        what = f"'{path}' cannot be read as an ONNX model"
        raise ModelError("step-failed", what, where=where, why=str(error)) from error
