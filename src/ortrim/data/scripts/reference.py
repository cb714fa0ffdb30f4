"""Runs a model in the full ONNX Runtime with optimizations off and saves the outputs.

Runs in the full runtime's own Python, which need not see ortrim: nothing but the standard library, NumPy and
onnxruntime is imported, and tensors in files are read and written anew, in the runner's form. A second implementation
is the point: a fault of the runner's own reading or writing cannot hide in both. Prints one JSON document.
"""

import argparse
import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

TYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(string)": "string",
    **{
        f"tensor({name})": name
        for name in (
            "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
        )
    },
}  # fmt: skip
BFLOAT16 = 16
"""The number of bfloat16 in ONNX's `TensorProto.DataType`."""


def main() -> int:
    """Run all cases; exit code 1 with a message in the JSON when the runtime refuses the model or an input."""
    arguments = read_arguments()
    try:
        session = open_session(arguments.model)
        cases = [run_case(session, name, folder, arguments.outputs) for name, folder in arguments.case]
    except Exception as error:  # noqa: BLE001 - the runtime raises its own kinds, one for each error code
        print(json.dumps({"status": "error", "message": f"{type(error).__name__}: {error}"}))  # noqa: T201
        return 1
    print(json.dumps({"status": "ok", "runtime_version": onnxruntime.__version__, "cases": cases}))  # noqa: T201
    return 0


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--outputs", type=Path, required=True)
    parser.add_argument("--case", action="append", default=[], nargs=2, metavar=("NAME", "FOLDER"))
    return parser.parse_args()


def open_session(model: str) -> Any:
    """Load the model with every optimization off."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run_case(session: Any, name: str, folder: str, outputs: Path) -> dict[str, Any]:
    """Run one case and save its outputs in `outputs/name`."""
    given = {info.name: read_input(Path(folder), index, info.type) for index, info in enumerate(session.get_inputs())}
    feeds = {key: value for key, value in given.items() if value is not None}
    (outputs / name).mkdir(parents=True)
    values = session.run_with_ort_values(None, feeds)
    saved = []
    for index, (info, value) in enumerate(zip(session.get_outputs(), values, strict=True)):
        saved += save_output(outputs / name, f"output_{index:03}", info.name, value)
    return {"name": name, "outputs": saved}


def read_input(folder: Path, index: int, kind: str) -> Any:
    """Return an input as the runtime's value; None when it is not given."""
    stem = folder / f"input_{index:03}"
    if stem.with_suffix(".strings").exists():
        return onnxruntime.OrtValue.ortvalue_from_numpy(read_strings(stem.with_suffix(".strings").read_bytes()))
    if not stem.with_suffix(".npy").exists():
        return None
    array = np.load(stem.with_suffix(".npy"), allow_pickle=False)
    if kind == "tensor(bfloat16)":
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def save_output(folder: Path, stem: str, name: str, value: Any) -> list[dict[str, Any]]:
    """Save one output, or each element of a sequence; describe what was saved as the runner does."""
    if not value.has_value():
        return [{"name": name, "element_type": "absent", "shape": [], "file": None}]
    if value.is_tensor_sequence():
        parts = enumerate(value.numpy())
        return [save_array(folder, f"{stem}_{at:03}", f"{name}[{at}]", np.asarray(part)) for at, part in parts]
    kind = TYPES.get(value.data_type())
    if kind is None or not value.is_tensor():
        return [{"name": name, "element_type": "unsupported", "shape": [], "file": None}]
    if kind == "bfloat16":
        bits = np.asarray(value.numpy()).view(np.uint16)
        return [save_array(folder, stem, name, bits) | {"element_type": kind}]
    return [save_array(folder, stem, name, np.asarray(value.numpy()))]


def save_array(folder: Path, stem: str, name: str, array: Any) -> dict[str, Any]:
    """Write an array and describe it."""
    strings = array.dtype.kind in "OUS"
    file = f"{stem}.strings" if strings else f"{stem}.npy"
    if strings:
        (folder / file).write_bytes(strings_bytes(array))
    else:
        np.save(folder / file, array, allow_pickle=False)
    kind = "string" if strings else array.dtype.name
    return {"name": name, "element_type": kind, "shape": list(array.shape), "file": file}


def read_strings(data: bytes) -> Any:
    """Read a `.strings` file."""
    (rank,) = struct.unpack_from("<Q", data)
    shape = struct.unpack_from(f"<{rank}Q", data, 8)
    at, elements = 8 * (1 + rank), np.empty(math.prod(shape), dtype=object)
    for index in range(len(elements)):
        (length,) = struct.unpack_from("<Q", data, at)
        elements[index] = data[at + 8 : at + 8 + length].decode()
        at += 8 + length
    return elements.reshape(shape)


def strings_bytes(array: Any) -> bytes:
    """Return the content of a `.strings` file."""
    texts = [str(element).encode() for element in array.reshape(-1)]
    head = struct.pack(f"<{1 + array.ndim}Q", array.ndim, *array.shape)
    return head + b"".join(struct.pack("<Q", len(text)) + text for text in texts)


if __name__ == "__main__":
    sys.exit(main())
