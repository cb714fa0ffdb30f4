"""The version of ONNX's own operators, up or down, and another model appended to this one."""

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import compose, defs

from ortrim.buildspec.step_specs import Merge, Opset
from ortrim.errors import ModelError
from ortrim.models.onnx_files import nodes_of
from ortrim.steps.graph import DEFAULT_DOMAIN, opset_of
from ortrim.steps.inputs_outputs import fed_inputs
from ortrim.steps.runtime_tools import by_onnx
from ortrim.steps.step import SKIP_HINT, Appended, Stepped, Workplace, step_failed


def to_opset(model: onnx.ModelProto, options: Opset, place: Workplace) -> Stepped:
    """Convert by onnx's converter; where no operator differs between the two, the number alone is changed.

    Raises `ModelError` (`step-failed`), which names the operators that the other opset has not, or has otherwise.
    """
    before = opset_of(model)
    if before == options.version:
        return Stepped(model=model)
    _require_known(options.version, place.where)
    missing, changed = _differences(model, before, options.version)
    if missing:
        raise _cannot_go(options.version, missing, place.where)
    if not changed:
        _set(model, options.version)
        return Stepped(model=model, notes=("no operator of the model differs between the two",))
    try:
        made = by_onnx(model, "convert-version", place, version=options.version)
    except ModelError as error:
        if error.code == "step-failed":
            error.why = f"{error.why}\noperators that differ: {', '.join(changed)}"
        raise
    made.ir_version = model.ir_version
    return Stepped(model=made, notes=(f"operators that differ: {', '.join(changed)}",))


def _require_known(version: int, where: str) -> None:
    if version > defs.onnx_opset_version():
        what = f"onnx {onnx.__version__} knows opsets up to {defs.onnx_opset_version()}, not {version}"
        raise step_failed(what, where, hint="choose an older one")


def _differences(model: onnx.ModelProto, before: int, after: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the model's operators that the new opset has not, and those that it has in another version."""
    used = sorted({node.op_type for node in nodes_of(model) if node.domain in DEFAULT_DOMAIN})
    since = {name: (_since(name, before), _since(name, after)) for name in used}
    missing = tuple(name for name, (old, new) in since.items() if old and not new)
    return missing, tuple(name for name, (old, new) in since.items() if old != new and name not in missing)


def _since(name: str, version: int) -> int:
    """Return since which opset an operator is as it is in `version`; 0 when it is not there or not any more."""
    try:
        schema = defs.get_schema(name, version, "")
    except defs.SchemaError:
        return 0
    return 0 if schema.deprecated else schema.since_version


def _cannot_go(version: int, missing: tuple[str, ...], where: str) -> ModelError:
    what = f"opset {version} does not have {', '.join(missing)}"
    return step_failed(what, where, hint=f"choose another opset, or export the model for that one; or {SKIP_HINT}")


def _set(model: onnx.ModelProto, version: int) -> None:
    for entry in (*model.opset_import, *(each for function in model.functions for each in function.opset_import)):
        if entry.domain in DEFAULT_DOMAIN:
            entry.version = version
    if not any(entry.domain in DEFAULT_DOMAIN for entry in model.opset_import):
        model.opset_import.add(domain="", version=version)


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
