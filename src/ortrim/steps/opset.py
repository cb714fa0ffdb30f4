"""Opset: the version of ONNX's own operators, up or down."""

import onnx
from onnx import defs

from ortrim.core.step_specs import Opset
from ortrim.errors import ModelError
from ortrim.steps.graph_wiring import DEFAULT_DOMAIN, opset_of
from ortrim.steps.graphs import nodes_in
from ortrim.steps.isolation import SKIP_HINT, step_failed
from ortrim.steps.onnx_tools import by_onnx
from ortrim.steps.stepped import Stepped, Workplace


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
        if error.reference == "step-failed":
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
    used = sorted({node.op_type for node in nodes_in(model) if node.domain in DEFAULT_DOMAIN})
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
