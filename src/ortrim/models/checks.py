"""Checks of a model's copy before anything else is done with it."""

from pathlib import Path
from typing import Final

import onnx

from ortrim.core.models import ModelFacts
from ortrim.errors import ModelError
from ortrim.models.external_data import external_files
from ortrim.models.limits import check_limits
from ortrim.models.onnx_reading import facts_of, read_onnx

FORGIVEN: Final = (
    "Field 'name' of 'graph' is required",
    "Field 'shape' of 'type' is required",
    "Field 'type' of 'value_info' is required",
    "must be topologically sorted",
    "No opset import for domain 'com.microsoft",
    "No Op registered for",
)
"""Complaints of the checker about models that ONNX Runtime takes: it sorts nodes itself, needs neither graph names
nor ranks nor types of outputs, and knows its own domain and operators. Whether it really takes them, the conversion
finds out."""


def check_model(
    path: Path, *, sha256: str, size_bytes: int, ort_version: str, where: str
) -> tuple[ModelFacts, tuple[str, ...]]:
    """Check a copy; return its facts and the files it refers to, which have to lie beside it for the full check.

    Without them only the facts are checked. Raises `ModelError`: `not-onnx`, `unsupported-input-type`,
    `unsupported-output-type`, `unsupported-opset`, `unsupported-ir-version`, `unsafe-external-data`,
    `model-invalid`.
    """
    model = read_onnx(path, where)
    facts = facts_of(model, sha256, size_bytes, where)
    check_limits(facts, ort_version, where)
    external = external_files(model, where)
    if all((path.parent / name).is_file() for name in external):
        _run_checker(path, where)
    return facts, external


def _run_checker(path: Path, where: str) -> None:
    try:
        onnx.checker.check_model(str(path))
    except (onnx.checker.ValidationError, ValueError) as error:
        words = str(error).strip()
        if not any(forgiven in words for forgiven in FORGIVEN):
            hint = "export the model again; onnx.checker.check_model shows the same complaint"
            raise ModelError(
                "model-invalid", "the model is not valid ONNX", where=where, why=words, hint=hint
            ) from error
