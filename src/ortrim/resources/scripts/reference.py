"""Runs a model in the full ONNX Runtime, optimizations off unless a session says otherwise, and saves the outputs.

Runs in the full runtime's own Python, which need not see ortrim: nothing but the standard library, NumPy and
onnxruntime is imported, and tensors in files are read and written anew, in the runner's form. A second implementation
is the point: a fault of the runner's own reading or writing cannot hide in both. Prints one JSON document.
"""

import argparse
import ctypes
import json
import math
import re
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

AMX = "amx_int8"
"""What the kernel calls Intel's matrix instructions for integers, in `/proc/cpuinfo`."""
NO_AMX = (
    (0x20, 0, 0, 4),  # load the architecture
    (0x15, 0, 5, 0xC000003E),  # unless it is x86-64, allow
    (0x20, 0, 0, 0),  # load the number of the system call
    (0x15, 0, 3, 158),  # unless it is arch_prctl, allow
    (0x20, 0, 0, 16),  # load what it is asked for
    (0x15, 0, 1, 0x1023),  # unless it is leave to use AMX, allow
    (0x06, 0, 0, 0x00050001),  # EPERM
    (0x06, 0, 0, 0x7FFF0000),  # allow
)
"""A filter of system calls for seccomp(2), by which the kernel refuses this process AMX."""


class Filter(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def go_without_amx() -> None:
    """Keep ONNX Runtime from its AMX kernels, whose integer products are wrong in some tiles.

    In row 31 of a tile with less than 16 columns, by comparison with NumPy; they differ from those of every other
    processor (microsoft/onnxruntime#26324). To be called before onnxruntime is imported, which asks for AMX. Where the
    kernel takes no filter, everything is as it was.
    """
    facts = Path("/proc/cpuinfo")
    if not facts.is_file() or AMX not in facts.read_text(encoding="utf-8", errors="replace"):
        return
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in NO_AMX)
    wanted = Filter(len(NO_AMX), packed)
    library = ctypes.CDLL(None)
    library.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS, without which only root may filter
    library.prctl(22, 2, ctypes.byref(wanted), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


go_without_amx()
import onnxruntime  # noqa: E402

IN_BYTES = ("session.use_ort_model_bytes_directly", "session.use_ort_model_bytes_for_initializers")
"""Entries that are left out: the binding for Python frees a model's bytes before a session is initialized."""

LEVELS = {
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    None: onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
BFLOAT16_TENSOR = "tensor(bfloat16)"
BFLOAT16 = 16
"""The number of bfloat16 in ONNX's `TensorProto.DataType`."""
MAP = re.compile(r"map\((int64|string),tensor\((int64|string|float|double)\)\)")
MARKER = re.compile(r"ortrim_marker_(\d+)_kernel_time")
"""The profile's event of a marker that ran; not JSON, since the runtime escapes nothing in the names of nodes."""
MAP_TYPES = {"int64": "int64", "string": "object", "float": "float32", "double": "float64"}


def main() -> int:
    """Run all cases; exit code 1 with a message in the JSON when the runtime refuses the model, or a case by name."""
    arguments = read_arguments()
    cases: list[dict[str, Any]] = []
    case = None
    try:
        onnxruntime.set_seed(1)
        session = open_session(arguments.model, arguments.session)
        for name, folder in arguments.case:
            case = name
            cases.append(run_case(session, name, folder, arguments.outputs))
        mark_random(arguments, cases)
        entered = entered_bodies(arguments)
    except Exception as error:  # noqa: BLE001 - the runtime raises its own kinds, one for each error code
        message = f"{type(error).__name__}: {error}"
        print(json.dumps({"status": "error", "message": message, "case": case}))  # noqa: T201
        return 1
    document = {"status": "ok", "runtime_version": onnxruntime.__version__, "cases": cases, "entered": entered}
    print(json.dumps(document))  # noqa: T201
    return 0


def mark_random(arguments: argparse.Namespace, cases: list[dict[str, Any]]) -> None:
    """Mark the outputs that another seed makes different, for which no two runs can agree."""
    onnxruntime.set_seed(2)
    session = open_session(arguments.model, arguments.session)
    with tempfile.TemporaryDirectory() as again:
        for (name, folder), case in zip(arguments.case, cases, strict=True):
            run_case(session, name, folder, Path(again))
            for output in case["outputs"]:
                output["random"] = output["file"] is not None and not same_bytes(
                    arguments.outputs / name / output["file"], Path(again) / name / output["file"]
                )


def entered_bodies(arguments: argparse.Namespace) -> list[int]:
    """Run the marked copy of the model with a profile; return the numbers of the markers that ran in any case."""
    if arguments.marked is None:
        return []
    with tempfile.TemporaryDirectory() as again:
        session = open_session(arguments.marked, profile=str(Path(again) / "profile"))
        for name, folder in arguments.case:
            run_case(session, name, folder, Path(again))
        text = Path(session.end_profiling()).read_text(encoding="utf-8", errors="replace")
    return sorted({int(number) for number in MARKER.findall(text)})


def same_bytes(one: Path, other: Path) -> bool:
    """Whether both files are there with the same content."""
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--outputs", type=Path, required=True)
    parser.add_argument("--session", help="a session's settings in JSON, with which the model is loaded and run")
    parser.add_argument("--marked", help="a copy of the model with a marker in each body of control flow")
    parser.add_argument("--case", action="append", default=[], nargs=2, metavar=("NAME", "FOLDER"))
    return parser.parse_args()


def open_session(model: str, settings: str | None = None, *, profile: str = "") -> Any:
    """Load the model, with a session's settings if there are any; with `profile`, write one to a file."""
    options = onnxruntime.SessionOptions()
    options.enable_profiling = bool(profile)
    options.profile_file_prefix = profile
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = LEVELS["none"]
    if settings:
        set_options(options, json.loads(settings))
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def set_options(options: Any, chosen: dict[str, Any]) -> None:
    """Set what ortrim's `SessionSettings` say, as the runner does."""
    options.intra_op_num_threads = chosen["threads"]
    options.inter_op_num_threads = chosen["inter_op_threads"]
    if chosen["inter_op_threads"] > 1:
        options.execution_mode = onnxruntime.ExecutionMode.ORT_PARALLEL
    options.enable_cpu_mem_arena = chosen["arena"]
    options.enable_mem_pattern = chosen["memory_pattern"]
    options.graph_optimization_level = LEVELS[chosen["optimization_level"]]
    for kind in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{kind}.allow_spinning", str(int(chosen["allow_spinning"])))
    for key, value in chosen["configuration"]:
        if key not in IN_BYTES:
            options.add_session_config_entry(key, value)


def run_case(session: Any, name: str, folder: str, outputs: Path) -> dict[str, Any]:
    """Run one case and save its outputs in `outputs/name`."""
    given = {info.name: read_input(Path(folder), index) for index, info in enumerate(session.get_inputs())}
    feeds = {key: array for key, array in given.items() if array is not None}
    (outputs / name).mkdir(parents=True)
    values = run_bits(session, feeds) if uses_bfloat16(session) else session.run(None, feeds)
    saved = []
    for index, (info, value) in enumerate(zip(session.get_outputs(), values, strict=True)):
        saved += save_output(outputs / name, f"output_{index:03}", info, value)
    return {"name": name, "outputs": saved}


def uses_bfloat16(session: Any) -> bool:
    """Whether an input or output has the type that NumPy lacks."""
    return any(info.type == BFLOAT16_TENSOR for info in (*session.get_inputs(), *session.get_outputs()))


def run_bits(session: Any, feeds: dict[str, Any]) -> list[Any]:
    """Run with bfloat16 as the uint16 of its bits; the runtime takes no strings this way."""
    make = onnxruntime.OrtValue.ortvalue_from_numpy
    make_bits = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    kinds = {info.name: info.type for info in session.get_inputs()}
    values = {
        name: make_bits(array, BFLOAT16) if kinds[name] == BFLOAT16_TENSOR else make(array)
        for name, array in feeds.items()
    }
    found = session.run_with_ort_values(None, values)
    return [bits_of(value) if value.data_type() == BFLOAT16_TENSOR else value.numpy() for value in found]


def bits_of(value: Any) -> Any:
    """Return a bfloat16 value's bits, which NumPy can only be given as raw memory."""
    shape = value.shape()
    size = 2 * math.prod(shape)
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(data, dtype=np.uint16).reshape(shape)


def read_input(folder: Path, index: int) -> Any:
    """Return an input as an array; None when it is not given."""
    stem = folder / f"input_{index:03}"
    if stem.with_suffix(".strings").exists():
        return read_strings(stem.with_suffix(".strings").read_bytes())
    return np.load(stem.with_suffix(".npy"), allow_pickle=False) if stem.with_suffix(".npy").exists() else None


def save_output(folder: Path, stem: str, info: Any, value: Any) -> list[dict[str, Any]]:
    """Save one output, or each element of a sequence; describe what was saved as the runner does."""
    if not isinstance(value, list):
        return save_value(folder, stem, info.name, info.type, value)
    saved = []
    for at, part in enumerate(value):
        saved += save_value(folder, f"{stem}_{at:03}", f"{info.name}[{at}]", info.type, part)
    return saved


def save_value(folder: Path, stem: str, name: str, kind: str, value: Any) -> list[dict[str, Any]]:
    """Save a tensor, or the keys and the values of a map; `kind` is the type of the whole output."""
    if value is None:
        return [{"name": name, "element_type": "absent", "shape": [], "file": None}]
    if isinstance(value, dict):
        return save_map(folder, stem, name, kind, value)
    if not isinstance(value, np.ndarray):
        return [{"name": name, "element_type": "unsupported", "shape": [], "file": None}]
    saved = save_array(folder, stem, name, value)
    return [saved | {"element_type": "bfloat16"} if kind == BFLOAT16_TENSOR else saved]


def save_map(folder: Path, stem: str, name: str, kind: str, value: dict[Any, Any]) -> list[dict[str, Any]]:
    """Save keys and values as two vectors of the types that `kind` names, which Python's numbers have lost."""
    found = MAP.search(kind)
    if found is None:
        return [{"name": name, "element_type": "unsupported", "shape": [], "file": None}]
    keys = np.array(list(value.keys()), dtype=MAP_TYPES[found[1]])
    values = np.array(list(value.values()), dtype=MAP_TYPES[found[2]])
    return [
        save_array(folder, f"{stem}_keys", f"{name}.keys", keys),
        save_array(folder, f"{stem}_values", f"{name}.values", values),
    ]


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
