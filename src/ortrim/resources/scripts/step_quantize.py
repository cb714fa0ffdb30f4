"""Quantize a model to 8 bits, by ONNX Runtime's own quantizer.

Runs inside the full runtime's Python with onnx beside it, so it imports nothing of ortrim. Called with the path of a
request in JSON; writes its answer beside it.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization.registry import IntegerOpsRegistry

SILENT = 4
METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
TYPES = {"int8": quantization.QuantType.QInt8, "uint8": quantization.QuantType.QUInt8}
UNSIGNED_ALONE = {"Conv"}
"""What is quantized dynamically with unsigned weights alone: the CPU's ConvInteger has no kernel for signed ones."""


class Recorded(quantization.CalibrationDataReader):  # type: ignore[misc]  # without types of its own
    """Calibration data from files, one set of inputs in each."""

    def __init__(self, paths: list[str], model: str, names: dict[str, str]) -> None:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        self.names = {value.name: names[value.name] for value in session.get_inputs()}
        self.waiting = list(paths)

    def get_next(self) -> dict[str, Any] | None:
        """Return the next set; None behind the last."""
        return self.read(self.waiting.pop(0)) if self.waiting else None

    def read(self, path: str) -> dict[str, Any]:
        """Return the inputs in one file."""
        with np.load(path, allow_pickle=False) as content:
            if missing := [name for name in self.names.values() if name not in content.files]:
                message = f"{Path(path).name} lacks the inputs {', '.join(missing)}"
                raise ValueError(message)
            return {alias: content[name] for alias, name in self.names.items()}

    def require_one_shape(self) -> None:
        """Refuse inputs of several shapes, of which the quantizer can make no histograms."""
        shapes = {tuple(array.shape for array in self.read(path).values()) for path in self.waiting}
        if len(shapes) > 1:
            message = "this method needs calibration data of the same shapes throughout; method = 'minmax' does not"
            raise ValueError(message)


def main(request_path: Path) -> None:
    """Answer `{}`, or `{"failure": words}`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    answer: dict[str, Any] = {}
    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(SILENT)
    try:
        quantize(request)
    except Exception as error:  # noqa: BLE001 - whatever the quantizer raises is the answer
        answer = {"failure": f"{type(error).__name__}: {error}"}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def quantize(request: dict[str, Any]) -> None:
    """Quantize as asked and write the model."""
    common = {
        "per_channel": request["per_channel"],
        "reduce_range": request["reduce_range"],
        "weight_type": TYPES[request["weights"]],
        "nodes_to_exclude": request["exclude"],
    }
    if request["mode"] == "static":
        recorded = Recorded(request["data"], request["model"], request["inputs"])
        if request["method"] != "minmax":
            recorded.require_one_shape()
        quantization.quantize_static(
            request["model"],
            request["output"],
            recorded,
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=TYPES[request["activations"]],
            calibrate_method=quantization.CalibrationMethod[METHODS[request["method"]]],
            op_types_to_quantize=request["operators"],
            **common,
        )
    else:
        operators = request["operators"] or dynamic_operators(request["weights"])
        quantization.quantize_dynamic(request["model"], request["output"], op_types_to_quantize=operators, **common)


def dynamic_operators(weights: str) -> list[str]:
    """Return what is quantized dynamically when nothing is named."""
    return sorted(set(IntegerOpsRegistry) - (UNSIGNED_ALONE if weights == "int8" else set()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
