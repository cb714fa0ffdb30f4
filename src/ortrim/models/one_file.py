"""A model with its data in itself."""

from pathlib import Path

import onnx
from onnx.external_data_helper import load_external_data_for_model

from ortrim.errors import ModelError
from ortrim.models.external_data import external_files
from ortrim.models.onnx_reading import read_onnx


def with_own_data(path: Path, where: str) -> onnx.ModelProto:
    """Read a checked copy of ours and put the tensors into it that lie beside it. Raises `ModelError`."""
    model = read_onnx(path, where)
    if not external_files(model, where):
        return model
    try:
        load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        hint = "export the model again with its data beside it"
        raise ModelError(
            "missing-external-data", "its weights cannot be read", where=where, why=str(error), hint=hint
        ) from error
    return model
