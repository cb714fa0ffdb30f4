"""Convert one ONNX model to ORT format and list the operators and types it requires.

Runs inside the full runtime's own Python, so it imports only the standard library and onnxruntime. Called with
the path of a request in JSON; writes its answer beside it. Follows upstream's
`onnxruntime/tools/convert_onnx_models_to_ort.py`, which cannot be called itself: it takes the level from the
environment and names its outputs after the input.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnxruntime
from onnxruntime.tools.ort_format_model import create_config_from_models

LEVELS = {
    "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
SILENT = 4


def main(request_path: Path) -> None:
    """Answer a request: `{"failure": ..., "words": ...}` or `{"typed": ...}` in `answer.json`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    try:
        answer = convert(request)
    except Exception as error:  # noqa: BLE001 - whatever the converter raises is the answer
        answer = {"failure": "conversion-failed", "words": str(error)}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def convert(request: dict[str, Any]) -> dict[str, Any]:
    """Convert as asked and write the configuration."""
    if onnxruntime.__version__ != request["version"]:
        words = f"asked for {request['version']}, found {onnxruntime.__version__}"
        return {"failure": "wrong-version", "words": words}
    onnxruntime.set_default_logger_severity(SILENT)
    output, config = Path(request["output"]), Path(request["config"])
    if request["style"] == "fixed":
        save(request, output, {})
        return {"typed": write_config([output], config)}
    save(request, output, {"optimization.minimal_build_optimizations": "save"})
    with tempfile.TemporaryDirectory(dir=output.parent) as folder:
        # Saved optimizations may or may not be applied when the model is loaded: both sets of operators are required.
        applied = Path(folder) / "applied.ort"
        save(request, applied, {"optimization.minimal_build_optimizations": "apply"})
        return {"typed": write_config([output, applied], config)}


def save(request: dict[str, Any], output: Path, entries: dict[str, str]) -> None:
    """Save the optimized model in ORT format."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    options.graph_optimization_level = LEVELS[request["level"]]
    options.optimized_model_filepath = str(output)
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.add_session_config_entry("session.qdqisint8allowed", "1" if request["layout"] == "s8s8" else "0")
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    # NCHWc bakes the block size of the converter's processor into the model: only for those who ask for it.
    blocks = request["layout"] in ("nchwc8", "nchwc16")
    disabled = ["NchwcTransformer"] if request["level"] == "all" and not blocks else None
    onnxruntime.InferenceSession(
        request["model"], options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
    )


def write_config(models: list[Path], config: Path) -> bool:
    """Write the operators of `models` with types; without any when upstream's code cannot tell them (int4)."""
    try:
        create_config_from_models(models, config, enable_type_reduction=True)
    except Exception:  # noqa: BLE001 - it raises KeyError, ValueError and RuntimeError for types it does not know
        create_config_from_models(models, config, enable_type_reduction=False)
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
