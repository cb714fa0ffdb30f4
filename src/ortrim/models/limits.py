"""Which models an ONNX Runtime version takes. Pure."""

from dataclasses import dataclass
from typing import Final, NoReturn

from ortrim.core.models import ModelFacts
from ortrim.errors import ModelError

OLDEST_OPSET: Final = 7
"""Upstream's promise in `docs/Versioning.md`: every version runs opset 7 and up."""

LARGEST_MODEL_BYTES: Final = 2**31 - 1
"""Neither a protobuf message nor a flatbuffer, the ORT format, can be larger."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The newest opset of `ai.onnx`, the newest of `ai.onnx.ml`, and the newest IR version that a version reads."""

    opset: int
    ml_opset: int
    ir_version: int


LIMITS: Final = {
    "1.16": Limits(opset=19, ml_opset=3, ir_version=9),
    "1.17": Limits(opset=20, ml_opset=4, ir_version=9),
    "1.18": Limits(opset=21, ml_opset=4, ir_version=10),
    "1.19": Limits(opset=21, ml_opset=4, ir_version=10),
    "1.20": Limits(opset=21, ml_opset=4, ir_version=10),
    "1.21": Limits(opset=22, ml_opset=5, ir_version=10),
}
"""By minor version. Up to 1.20 from upstream's `docs/reference/compatibility.md`; 1.21 by asking the wheel."""


def limits_of(ort_version: str) -> Limits | None:
    """Return the limits of a version; None when they are not recorded, so that the converter has to judge."""
    return LIMITS.get(".".join(ort_version.split(".")[:2]))


def check_limits(facts: ModelFacts, ort_version: str, where: str) -> None:
    """Raise `ModelError` (`unsupported-opset`, `unsupported-ir-version`) for what `ort_version` does not take."""
    limits = limits_of(ort_version)
    newest = {"ai.onnx": limits.opset, "ai.onnx.ml": limits.ml_opset} if limits else {}
    for domain, opset in facts.opsets:
        oldest = OLDEST_OPSET if domain == "ai.onnx" else 1
        if not oldest <= opset <= newest.get(domain, opset):
            taken = f"{oldest} to {newest[domain]}" if domain in newest else f"{oldest} and up"
            what = f"the model uses opset {opset} of {domain}; ONNX Runtime {ort_version} takes {taken}"
            hint = "convert it with onnx.version_converter, export it with another opset, or change onnxruntime.version"
            raise ModelError("unsupported-opset", what, where=where, hint=hint)
    if limits and facts.ir_version > limits.ir_version:
        what = (
            f"the model has IR version {facts.ir_version}; ONNX Runtime {ort_version} reads up to {limits.ir_version}"
        )
        hint = (
            "set ir_version when exporting (onnx.helper.make_model(..., ir_version=...)), or change onnxruntime.version"
        )
        raise ModelError("unsupported-ir-version", what, where=where, hint=hint)


def refuse_size(size: int, where: str) -> NoReturn:
    """Raise `ModelError` (`model-too-large`)."""
    what = f"the model with its data has {size:,} bytes; a model in ORT format can have {LARGEST_MODEL_BYTES:,}"
    hint = "quantize the model, or split it into several"
    raise ModelError("model-too-large", what, where=where, hint=hint)
