"""Do one step to a model, or compare a model before a step with that after it, by tools that may crash.

Each step runs in the Python that has its tool: what it needs is imported in it, and nothing of ortrim. Called with the
path of a request in JSON, whose `do` names the step; writes `{"failure": words}` or the step's answer beside it, and
the new model to the request's `output`.
"""

import json
import logging
import math
import sys
import traceback
from pathlib import Path
from typing import Any

SILENT = 4
LARGEST_SIZE = 2**31 - 1
UNSIGNED_ALONE = {"Conv"}
"""What is quantized dynamically with unsigned weights alone: the CPU's ConvInteger has no kernel for signed ones."""
METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
FLOATS = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64"}


def main(request_path: Path) -> None:
    """Do what is asked and write the answer."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    try:
        answer = STEPS[request["do"]](request) or {}
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is the answer
        # Assertions often say nothing themselves.
        words = str(error) or traceback.extract_tb(error.__traceback__)[-1].line
        answer = {"failure": f"{type(error).__name__}: {words}"}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def convert_version(request: dict[str, Any]) -> None:
    """Convert to another opset of ONNX's own domain."""
    import onnx.version_converter

    made = onnx.version_converter.convert_version(onnx.load(request["model"]), request["version"])
    onnx.save(made, request["output"])


def infer_shapes(request: dict[str, Any]) -> None:
    """Infer shapes, and values that follow from them."""
    import onnx

    model = onnx.load(request["model"])
    made = onnx.shape_inference.infer_shapes(model, check_type=False, strict_mode=request["strict"], data_prop=True)
    onnx.save(made, request["output"])


def infer_symbolic_shapes(request: dict[str, Any]) -> None:
    """Infer shapes by ONNX Runtime's symbolic inference, which follows named dimensions through the model."""
    import onnx
    from onnxruntime.tools.symbolic_shape_infer import SymbolicShapeInference

    made = SymbolicShapeInference.infer_shapes(onnx.load(request["model"]), LARGEST_SIZE, auto_merge=True)
    onnx.save(made, request["output"])


def extract(request: dict[str, Any]) -> None:
    """Extract the part between some values."""
    import onnx.utils

    values = request["inputs"], request["outputs"]
    onnx.utils.extract_model(request["model"], request["output"], *values, check_model=False)


def simplify(request: dict[str, Any]) -> dict[str, Any]:
    """Simplify by onnxslim or onnxsim; say how large the model is if it is swollen beyond what may be."""
    import onnx

    model: Any = onnx.load(request["model"])
    if request["by"] == "onnxslim":
        import onnxruntime  # noqa: F401 - where onnxslim finds none it folds no constants, and says nothing
        import onnxslim

        model = onnxslim.slim(model)
    else:
        import onnxsim

        model, _ = onnxsim.simplify(model)
    size = model.ByteSize()
    if size > request["most_bytes"]:
        return {"swollen": size}
    onnx.save(model, request["output"])
    return {}


def float16(request: dict[str, Any]) -> dict[str, Any]:
    """Convert numbers of 32 bits to 16; answer which of the operators that are to keep them did."""
    import onnx
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    blocked = request["blocked_operators"]
    made = convert_float_to_float16(
        onnx.load(request["model"]),
        keep_io_types=request["keep_io_types"],
        op_block_list=blocked,
        node_block_list=request["blocked_nodes"],
    )
    OnnxModel(made).topological_sort()  # the casts are at the end
    onnx.save(made, request["output"])
    wanted = set(DEFAULT_OP_BLOCK_LIST if blocked is None else blocked)
    return {"blocked": sorted({node.op_type for node in made.graph.node if node.op_type in wanted})}


def optimize(request: dict[str, Any]) -> None:
    """Load the model at a level for a provider, and let the runtime write what it made of it."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(SILENT)
    providers = onnxruntime.get_available_providers()
    if request["provider"] not in providers:
        message = f"this ONNX Runtime has {', '.join(providers)}, and not {request['provider']}"
        raise ValueError(message)
    level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{request['level'].upper()}")
    options = session_options(level)
    options.optimized_model_filepath = request["output"]
    onnxruntime.InferenceSession(request["model"], options, providers=[request["provider"]])


def session_options(level: Any) -> Any:
    """Return the options of a silent session with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    return options


def quantize(request: dict[str, Any]) -> None:
    """Quantize to 8 bits, by ONNX Runtime's own quantizer."""
    import onnxruntime
    from onnxruntime import quantization
    from onnxruntime.quantization.registry import IntegerOpsRegistry

    logging.disable(logging.WARNING)
    onnxruntime.set_default_logger_severity(SILENT)
    types = {"int8": quantization.QuantType.QInt8, "uint8": quantization.QuantType.QUInt8}
    models = request["model"], request["output"]
    common = {
        "per_channel": request["per_channel"],
        "reduce_range": request["reduce_range"],
        "weight_type": types[request["weights"]],
        "nodes_to_exclude": request["exclude"],
    }
    if request["mode"] == "static":
        quantization.quantize_static(
            *models,
            recorded(request),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=types[request["activations"]],
            calibrate_method=quantization.CalibrationMethod[METHODS[request["method"]]],
            op_types_to_quantize=request["operators"],
            **common,
        )
    else:
        dynamic = sorted(set(IntegerOpsRegistry) - (UNSIGNED_ALONE if request["weights"] == "int8" else set()))
        quantization.quantize_dynamic(*models, op_types_to_quantize=request["operators"] or dynamic, **common)


def recorded(request: dict[str, Any]) -> Any:
    """Return calibration data from files, one set of inputs in each, for a model whose inputs have aliases."""
    import numpy as np
    import onnxruntime
    from onnxruntime import quantization

    session = onnxruntime.InferenceSession(request["model"], providers=["CPUExecutionProvider"])
    names = {value.name: request["inputs"][value.name] for value in session.get_inputs()}
    waiting = list(request["data"])

    def read(path: str) -> dict[str, Any]:
        with np.load(path, allow_pickle=False) as content:
            if missing := [name for name in names.values() if name not in content.files]:
                message = f"{Path(path).name} lacks the inputs {', '.join(missing)}"
                raise ValueError(message)
            return {alias: content[name] for alias, name in names.items()}

    class Recorded(quantization.CalibrationDataReader):  # type: ignore[misc]  # without types of its own
        def get_next(self) -> dict[str, Any] | None:
            """Return the next set; None behind the last."""
            return read(waiting.pop(0)) if waiting else None

    # Of inputs of several shapes the quantizer can make no histograms.
    if request["method"] != "minmax":
        shapes = {tuple(array.shape for array in read(path).values()) for path in waiting}
        if len(shapes) > 1:
            message = "this method needs calibration data of the same shapes throughout; method = 'minmax' does not"
            raise ValueError(message)
    return Recorded()


def compare(request: dict[str, Any]) -> dict[str, Any]:
    """Answer how far the float outputs that both models have are apart, over all sets of inputs."""
    import numpy as np
    import onnxruntime

    onnxruntime.set_default_logger_severity(SILENT)
    # Optimizations could hide or add differences.
    options = session_options(onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    sessions = [
        onnxruntime.InferenceSession(request[model], options, providers=["CPUExecutionProvider"])
        for model in ("before", "after")
    ]
    kinds = [{value.name for value in session.get_outputs() if value.type in FLOATS} for session in sessions]
    names = [value.name for value in sessions[0].get_outputs() if value.name in kinds[0] & kinds[1]]
    found: dict[str, list[tuple[Any, Any]]] = {name: [] for name in names}
    # Asked for no outputs at all, a session gives all of them.
    for path in request["data"] if names else ():
        with np.load(path, allow_pickle=False) as content:
            feeds = {name: content[name] for name in content.files}
        results = [session.run(names, of_own_width(session, feeds)) for session in sessions]
        for name, *pair in zip(names, *results, strict=True):
            one, other = (np.asarray(each, np.float64) for each in pair)
            found[name].append((one, other))
    return {"outputs": [{"name": name, **difference(pairs)} for name, pairs in found.items()]}


def of_own_width(session: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs of a model, floats of the width that it takes."""
    values = session.get_inputs()
    return {each.name: feeds[each.name].astype(FLOATS.get(each.type, feeds[each.name].dtype)) for each in values}


def difference(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Return how far outputs are apart: signal to noise, largest difference, range, rows of the same largest."""
    import numpy as np

    rows = [row for pair in pairs for row in agreeing(*pair)]
    found = {"decibels": None, "largest": None, "range": 0.0, "agreement": sum(rows) / len(rows) if rows else None}
    if any(one.shape != other.shape or not np.isfinite(one - other).all() for one, other in pairs):
        return found
    signal = sum(float((one**2).sum()) for one, _ in pairs)
    noise = sum(float(((one - other) ** 2).sum()) for one, other in pairs)
    found["decibels"] = 10 * math.log10(signal / noise) if signal > 0 and noise > 0 else None
    found["largest"] = max((float(np.abs(one - other).max(initial=0.0)) for one, other in pairs), default=0.0)
    found["range"] = max((float(np.abs(one).max(initial=0.0)) for one, _ in pairs), default=0.0)
    return found


def agreeing(one: Any, other: Any) -> list[bool]:
    """Return for each row, along the last axis, whether its largest element is the same; none for rows of one."""
    if one.shape != other.shape or one.ndim == 0 or one.size == 0 or one.shape[-1] < 2:
        return []
    return [bool(same) for same in (one.argmax(-1) == other.argmax(-1)).ravel()]


STEPS = {
    "compare": compare,
    "convert-version": convert_version,
    "extract": extract,
    "float16": float16,
    "infer-shapes": infer_shapes,
    "infer-symbolic-shapes": infer_symbolic_shapes,
    "optimize": optimize,
    "quantize": quantize,
    "simplify": simplify,
}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
