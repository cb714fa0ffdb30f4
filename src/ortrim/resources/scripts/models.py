"""Convert a model to ORT format, load one, or list the kernels of an operator, with the CPU execution provider alone.

Runs inside the full runtime's own Python, so it imports only the standard library and onnxruntime. Called with the path
of a request in JSON, whose `do` names the task; writes its answer beside it: what the task found, or
`{"failure": ..., "words": ...}`.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import onnxruntime

LEVELS = {
    "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
SILENT = 4


def main(request_path: Path) -> None:
    """Answer a request in `answer.json`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    try:
        tasks = {"convert": convert, "optimize": optimize, "load": load, "kernels": kernels}
        answer = tasks[request["do"]](request)
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is the answer
        failure = "conversion-failed" if request["do"] in ("convert", "optimize") else "load-failed"
        answer = {"failure": failure, "words": str(error)}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def convert(request: dict[str, Any]) -> dict[str, Any]:
    """Convert as asked and write the operators and types that the model requires; say whether there are types.

    Follows upstream's `onnxruntime/tools/convert_onnx_models_to_ort.py`, which cannot be called itself: it takes the
    level from the environment and names its outputs after the input.
    """
    if onnxruntime.__version__ != request["version"]:
        words = f"asked for {request['version']}, found {onnxruntime.__version__}"
        return {"failure": "wrong-version", "words": words}
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


def optimize(request: dict[str, Any]) -> dict[str, Any]:
    """Save the optimized model in ONNX format, in which it can be changed further."""
    save(request, Path(request["output"]), {}, "ONNX")
    return {}


def save(request: dict[str, Any], output: Path, entries: dict[str, str], form: str = "ORT") -> None:
    """Save the optimized model."""
    options = silent()
    options.graph_optimization_level = LEVELS[request["level"]]
    options.optimized_model_filepath = str(output)
    options.add_session_config_entry("session.save_model_format", form)
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
    from onnxruntime.tools.ort_format_model import create_config_from_models  # noqa: PLC0415 - only conversion needs it

    try:
        create_config_from_models(models, config, enable_type_reduction=True)
    except Exception:  # noqa: BLE001 - it raises KeyError, ValueError and RuntimeError for types it does not know
        create_config_from_models(models, config, enable_type_reduction=False)
        return False
    return True


def load(request: dict[str, Any]) -> dict[str, Any]:
    """Make a session and drop it: the only thing that really tells whether the runtime has all kernels."""
    options = silent()
    if not request.get("optimized", True):
        options.graph_optimization_level = LEVELS["disable"]
    onnxruntime.InferenceSession(request["model"], options, providers=["CPUExecutionProvider"])
    return {}


def silent() -> Any:
    """Return the options of a silent session with one thread."""
    onnxruntime.set_default_logger_severity(SILENT)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    return options


def kernels(request: dict[str, Any]) -> dict[str, Any]:
    """Return an operator's kernels with their opsets and types, and the domains that have the operator."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: PLC0415 - as above

    name = request["operator"]
    found = [
        {
            "domain": kernel.domain or "ai.onnx",
            "opsets": list(kernel.version_range),
            "types": {key: sorted(types) for key, types in kernel.type_constraints.items()},
        }
        for kernel in state.get_all_opkernel_def()
        if kernel.op_name == name and kernel.provider == "CPUExecutionProvider"
    ]
    known = sorted({schema.domain or "ai.onnx" for schema in state.get_all_operator_schema() if schema.name == name})
    return {"kernels": found, "known": known}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
