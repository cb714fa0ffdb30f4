"""The same ONNX model in an older opset or IR version, to find out whether it then fits somewhere."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import onnx
from onnx import version_converter

LARGEST_BYTES: Final = 1 << 30
"""A protobuf message has 2 GB at most, and both models are in memory."""


def at_opset(model: Path, opset: int, destination: Path) -> bool:
    """Write a model converted to another opset of `ai.onnx`; False when ONNX's converter cannot do it."""
    try:
        converted = version_converter.convert_version(onnx.load(model), opset)
    except Exception:  # noqa: BLE001 - it raises RuntimeError and its own kinds for whatever it has no adapter for
        return False
    return _written(converted, destination)


def at_ir_version(model: Path, ir_version: int, destination: Path) -> bool:
    """Write a model with another IR version; False when it cannot be read, or not be written in one file."""
    try:
        loaded = onnx.load(model)
    except Exception:  # noqa: BLE001 - weights in other files may be missing or outside the model's folder
        return False
    loaded.ir_version = ir_version
    return _written(loaded, destination)


def since_versions(names: Iterable[str], opset: int) -> dict[str, int] | None:
    """Return the opset since which each operator of `ai.onnx` is as it is in `opset`; None when one is not in it."""
    try:
        return {name: onnx.defs.get_schema(name, opset, "").since_version for name in names}
    except onnx.defs.SchemaError:
        return None


def _written(model: onnx.ModelProto, destination: Path) -> bool:
    if model.ByteSize() > LARGEST_BYTES:
        return False
    destination.write_bytes(model.SerializeToString())
    return True
