"""The models of this package in the trimmed ONNX Runtime beside them, by the names that `onnxruntime` has for it.

Session settings come from `models/session.json`, what a program sets itself comes first. Functions of the C API are
called by their places in `OrtApi`, which keep them from version to version (upstream's `onnxruntime_c_api.h`).
"""

import ctypes
import json
import mmap
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "ExecutionMode", "GraphOptimizationLevel", "InferenceSession", "NodeArg", "OrtError", "SessionOptions",
    "__version__", "get_available_providers", "get_device", "models",
]  # fmt: skip

FOLDER = Path(__file__).parent
SETTINGS: dict[str, Any] = json.loads((FOLDER / "models" / "session.json").read_text(encoding="utf-8"))
__version__: str = SETTINGS["onnxruntime"]

PLACES = {
    "GetErrorCode": 1, "GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "CreateSessionFromArray": 8, "Run": 9,
    "CreateSessionOptions": 10, "SetSessionExecutionMode": 13, "DisableMemPattern": 17, "DisableCpuMemArena": 19,
    "SetSessionLogSeverityLevel": 22, "SetSessionGraphOptimizationLevel": 23, "SetIntraOpNumThreads": 24,
    "SetInterOpNumThreads": 25, "SessionGetInputCount": 30, "SessionGetOutputCount": 31, "SessionGetInputTypeInfo": 33,
    "SessionGetOutputTypeInfo": 34, "SessionGetInputName": 36, "SessionGetOutputName": 37, "CreateTensorAsOrtValue": 48,
    "CreateTensorWithDataAsOrtValue": 49, "GetTensorMutableData": 51, "FillStringTensor": 52,
    "GetStringTensorDataLength": 53, "GetStringTensorContent": 54, "CastTypeInfoToTensorInfo": 55,
    "GetOnnxTypeFromTypeInfo": 56, "GetTensorElementType": 60, "GetDimensionsCount": 61, "GetDimensions": 62,
    "GetSymbolicDimensions": 63, "GetTensorTypeAndShape": 65, "GetValueType": 67, "CreateCpuMemoryInfo": 69,
    "AllocatorFree": 76, "GetAllocatorWithDefaultOptions": 78, "GetValue": 80, "GetValueCount": 81, "ReleaseStatus": 93,
    "ReleaseSession": 95, "ReleaseValue": 96, "ReleaseTypeInfo": 98, "ReleaseTensorTypeAndShapeInfo": 99,
    "ReleaseSessionOptions": 100, "AddSessionConfigEntry": 130,
    "SessionOptionsAppendExecutionProvider": 216,
}  # fmt: skip
TYPES = {
    1: ("float", "float32"), 2: ("uint8", "uint8"), 3: ("int8", "int8"), 4: ("uint16", "uint16"),
    5: ("int16", "int16"), 6: ("int32", "int32"), 7: ("int64", "int64"), 8: ("string", "object"), 9: ("bool", "bool"),
    10: ("float16", "float16"), 11: ("double", "float64"), 12: ("uint32", "uint32"), 13: ("uint64", "uint64"),
}  # fmt: skip
"""Element types by their numbers in C: ONNX's names and NumPy's."""
NUMBERS = {np.dtype(numpy): number for number, (_, numpy) in TYPES.items()}
WRITTEN = {number: np.dtype(numpy).str for number, (_, numpy) in TYPES.items()}
STRING = 8
TENSOR, SEQUENCE, MAP = 1, 2, 3
KINDS = {SEQUENCE: "seq", MAP: "map", 4: "opaque", 5: "sparse_tensor", 6: "optional"}
ARENA, DEFAULT_MEMORY, WARNING = 1, 0, 2


class OrtError(RuntimeError):
    """What ONNX Runtime refused, in its own words, with its code (upstream's enumeration of errors)."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


class ExecutionMode(IntEnum):
    """Whether parts of a model run at the same time."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class GraphOptimizationLevel(IntEnum):
    """What is done to a model when it is loaded."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class SessionOptions:
    """What a session is to have otherwise than `session.json` says; nothing of what is left as it is.

    A model was optimized when it was converted, whatever `graph_optimization_level` is.
    """

    __slots__ = (
        "_entries", "enable_cpu_mem_arena", "enable_mem_pattern", "execution_mode", "graph_optimization_level",
        "inter_op_num_threads", "intra_op_num_threads", "log_severity_level",
    )  # fmt: skip

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.log_severity_level = WARNING
        self.enable_cpu_mem_arena: bool | None = None
        self.enable_mem_pattern: bool | None = None
        self.execution_mode: ExecutionMode | None = None
        self.inter_op_num_threads: int | None = None
        self.intra_op_num_threads: int | None = None

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set an entry of the session's configuration."""
        self._entries[key] = value

    def over(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return settings as in `session.json` with what was set here."""
        names = ("enable_cpu_mem_arena", "enable_mem_pattern", "inter_op_num_threads", "intra_op_num_threads")
        own = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        mode = {} if self.execution_mode is None else {"execution_mode": self.execution_mode.name}
        return {**settings, **own, **mode, "session_configuration": settings["session_configuration"] | self._entries}


class NodeArg:
    """An input or output of a model: its name, its type as ONNX writes it, its dimensions by number or by name."""

    def __init__(self, name: str, kind: str, shape: list[int | str | None]) -> None:
        self.name, self.type, self.shape = name, kind, shape

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class InferenceSession:
    """A session of a model: one of this package by its name, or by any path whose file would have that name.

    A path of an `.ort` file that exists is that file. What else `onnxruntime` takes, such as `providers`, changes
    nothing: the library has what its models need. A session may run in several threads at once.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | None = None,
        sess_options: SessionOptions | None = None,
        *_: Any,
        **__: Any,
    ) -> None:
        self._api = api = _api()
        options = sess_options or SessionOptions()
        place, settings = (Path(), _plain()) if isinstance(path_or_bytes, bytes) else _found(path_or_bytes)
        made = _options(api, options.over(settings), options.log_severity_level)
        content = path_or_bytes if isinstance(path_or_bytes, bytes) else _content(place, settings["load"])
        handle = ctypes.c_void_p()
        try:
            if content is None:
                api("CreateSession", api.environment, os.fsencode(str(place)), made, ctypes.byref(handle))
            else:
                data = np.frombuffer(content, dtype=np.uint8)
                size = ctypes.c_size_t(data.nbytes)
                api("CreateSessionFromArray", api.environment, _pointer(data), size, made, ctypes.byref(handle))
        finally:
            api.release("SessionOptions", made)
        self._handle, self._content = handle, content
        # What holds the bytes goes after the session, which may use them in place.
        weakref.finalize(self, lambda _: api.release("Session", handle), content)

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """Return the outputs of these names, all by default: arrays, lists for sequences, dictionaries for maps.

        An input is an array or what NumPy makes one of. An output is in memory of its own, also for later runs.
        """
        if run_options is not None:
            raise TypeError("there are no options of a single run")
        wanted = [each.name for each in self._outputs] if output_names is None else list(output_names)
        missing = [each.name for each in self._inputs if each.name not in input_feed]
        if missing:
            raise ValueError(f"inputs are missing: {', '.join(missing)}; given: {', '.join(input_feed)}")
        arrays = {name: _array(value, self._types.get(name, "")) for name, value in input_feed.items()}
        values, made = list[Any](), (ctypes.c_void_p * len(wanted))()
        counts = ctypes.c_size_t(len(arrays)), ctypes.c_size_t(len(wanted))
        try:
            values.extend(map(self._api.tensor, arrays.values()))
            given = (ctypes.c_void_p * len(arrays))(*values)
            self._api("Run", self._handle, None, _texts(arrays), given, counts[0], _texts(wanted), counts[1], made)
        finally:
            for each in values:
                self._api.release("Value", each)
        return [self._api.read(each or 0) for each in made]

    def get_inputs(self) -> list[NodeArg]:
        """Return what `run` takes."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return what `run` gives."""
        return list(self._outputs)

    def get_providers(self) -> list[str]:
        """Return what computes."""
        return get_available_providers()

    @cached_property
    def _inputs(self) -> list[NodeArg]:
        return self._api.arguments(self._handle, "Input")

    @cached_property
    def _types(self) -> dict[str, str]:
        return {each.name: each.type for each in self._inputs}

    @cached_property
    def _outputs(self) -> list[NodeArg]:
        return self._api.arguments(self._handle, "Output")


def models() -> list[str]:
    """Return the names of this package's models."""
    return list(SETTINGS["models"])


PROVIDERS = {"XNNPACK": "XnnpackExecutionProvider"}


def get_available_providers() -> list[str]:
    """Return what computes: execution providers that `session.json` names, of all models alike, and the CPU's."""
    asked = next(iter(SETTINGS["models"].values())).get("execution_providers", ())
    return [*(PROVIDERS.get(name, name) for name in asked), "CPUExecutionProvider"]


def get_device() -> str:
    """Return where it computes."""
    return "CPU"


def _found(asked: str | os.PathLike[str] | None) -> tuple[Path, Mapping[str, Any]]:
    """Return a model's file and its settings."""
    if asked is None and len(SETTINGS["models"]) == 1:
        asked = models()[0]
    path = Path(asked or "")
    if path.suffix == ".ort" and path.is_file():
        return path, SETTINGS["models"].get(path.stem, _plain())
    name = path.stem if path.suffix in (".onnx", ".ort") else path.name
    if name not in SETTINGS["models"]:
        raise FileNotFoundError(f"there is no model {name!r} in this package: it has {', '.join(models())}")
    settings: Mapping[str, Any] = SETTINGS["models"][name]
    return FOLDER / "models" / settings["file"], settings


def _plain() -> Mapping[str, Any]:
    """Return the settings of a model that `session.json` does not know."""
    own: Mapping[str, Any] = next(iter(SETTINGS["models"].values()))
    return {**own, "load": "file", "session_configuration": {}}


def _content(path: Path, load: str) -> Any:
    if load == "file":
        return None
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if load == "map" else file.read()


def _options(api: "_Api", chosen: Mapping[str, Any], severity: int) -> ctypes.c_void_p:
    options = ctypes.c_void_p()
    api("CreateSessionOptions", ctypes.byref(options))
    api("SetIntraOpNumThreads", options, ctypes.c_int(chosen["intra_op_num_threads"]))
    api("SetInterOpNumThreads", options, ctypes.c_int(chosen["inter_op_num_threads"]))
    api("SetSessionExecutionMode", options, ctypes.c_int(ExecutionMode[chosen["execution_mode"]]))
    level = GraphOptimizationLevel[chosen["graph_optimization_level"]]
    api("SetSessionGraphOptimizationLevel", options, ctypes.c_int(level))
    api("SetSessionLogSeverityLevel", options, ctypes.c_int(severity))
    if not chosen["enable_cpu_mem_arena"]:
        api("DisableCpuMemArena", options)
    if not chosen["enable_mem_pattern"]:
        api("DisableMemPattern", options)
    for name in chosen.get("execution_providers", ()):
        api("SessionOptionsAppendExecutionProvider", options, name.encode(), None, None, ctypes.c_size_t(0))
    for key, value in chosen["session_configuration"].items():
        api("AddSessionConfigEntry", options, key.encode(), value.encode())
    return options


def _array(value: Any, kind: str) -> Any:
    """Return a value as an array in C's order, of the model's type if it is none yet."""
    if isinstance(value, np.ndarray):
        return value if value.flags.c_contiguous else value.copy()
    numpy = next((numpy for onnx, numpy in TYPES.values() if kind == f"tensor({onnx})"), None)
    if numpy is None and kind:
        raise TypeError(f"a {kind} cannot be given from Python")
    return np.array(value, numpy)


def _texts(texts: Iterable[str]) -> Any:
    """Return texts as C has them."""
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(encoded))(*encoded)


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.__array_interface__["data"][0])


class _Held:
    """An output's memory, which is released with the last array in it."""

    def __init__(self, value: ctypes.c_void_p, interface: dict[str, Any], release: Callable[[str, Any], None]) -> None:
        self.__array_interface__, self._value, self._release = interface, value, release

    def __del__(self) -> None:
        self._release("Value", self._value)


class _Api:
    """The functions of `OrtApi`, by name."""

    def __init__(self) -> None:
        pointer = ctypes.POINTER(ctypes.c_void_p)
        library = ctypes.CDLL(str(FOLDER / "libonnxruntime.so"))
        library.OrtGetApiBase.restype = pointer
        get_api = ctypes.CFUNCTYPE(pointer, ctypes.c_uint32)(library.OrtGetApiBase()[0])
        self._table = get_api(int(__version__.split(".")[1]))
        self._functions: dict[str, Any] = {}
        self._library, self.environment = library, ctypes.c_void_p()
        self._memory, self._allocator = ctypes.c_void_p(), ctypes.c_void_p()
        self("CreateEnv", ctypes.c_int(WARNING), b"ortrim", ctypes.byref(self.environment))
        self("CreateCpuMemoryInfo", ctypes.c_int(ARENA), ctypes.c_int(DEFAULT_MEMORY), ctypes.byref(self._memory))
        self("GetAllocatorWithDefaultOptions", ctypes.byref(self._allocator))

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a status. Raises `OrtError`."""
        status = self._function(name, ctypes.c_void_p, arguments)(*arguments)
        if status:
            held = ctypes.c_void_p(status)
            words = self._function("GetErrorMessage", ctypes.c_char_p, (held,))(held).decode(errors="replace")
            code = self._function("GetErrorCode", ctypes.c_int, (held,))(held)
            self.release("Status", held)
            raise OrtError(code, words)

    def release(self, kind: str, value: Any) -> None:
        """Release what a function made."""
        self._function(f"Release{kind}", None, (ctypes.c_void_p(),))(value)

    def _function(self, name: str, result: Any, arguments: tuple[Any, ...]) -> Any:
        if name not in self._functions:
            plain = (ctypes.c_int, ctypes.c_size_t)
            kinds = [next((kind for kind in plain if isinstance(each, kind)), ctypes.c_void_p) for each in arguments]
            self._functions[name] = ctypes.CFUNCTYPE(result, *kinds)(self._table[PLACES[name]])
        return self._functions[name]

    def tensor(self, array: Any) -> int | None:
        """Return an array as a tensor, which uses its memory if it holds numbers."""
        value = ctypes.c_void_p()
        shape, rank = (ctypes.c_int64 * array.ndim)(*array.shape), ctypes.c_size_t(array.ndim)
        if array.dtype.kind in "OUS":
            made = ctypes.byref(value)
            self("CreateTensorAsOrtValue", self._allocator, shape, rank, ctypes.c_int(STRING), made)
            self("FillStringTensor", value, _texts(map(str, array.flat)), ctypes.c_size_t(array.size))
            return value.value
        if array.dtype not in NUMBERS:
            raise TypeError(f"no tensor has elements of {array.dtype}")
        size, kind = ctypes.c_size_t(array.nbytes), ctypes.c_int(NUMBERS[array.dtype])
        made = ctypes.byref(value)
        self("CreateTensorWithDataAsOrtValue", self._memory, _pointer(array), size, shape, rank, kind, made)
        return value.value

    def read(self, value: int) -> Any:
        """Return what a value holds, and let go of it."""
        handle, kind = ctypes.c_void_p(value), ctypes.c_int()
        self("GetValueType", handle, ctypes.byref(kind))
        if kind.value == TENSOR:
            return self._tensor_array(handle)
        try:
            if kind.value not in (SEQUENCE, MAP):
                raise TypeError(f"an output of kind {KINDS.get(kind.value, kind.value)} has no form in Python")
            count, inner = ctypes.c_size_t(), []
            self("GetValueCount", handle, ctypes.byref(count))
            for number in range(count.value):
                part = ctypes.c_void_p()
                self("GetValue", handle, ctypes.c_int(number), self._allocator, ctypes.byref(part))
                inner.append(self.read(part.value or 0))
        finally:
            self.release("Value", handle)
        return dict(zip(*(each.tolist() for each in inner), strict=True)) if kind.value == MAP else inner

    def _tensor_array(self, value: ctypes.c_void_p) -> Any:
        about, data = ctypes.c_void_p(), ctypes.c_void_p()
        self("GetTensorTypeAndShape", value, ctypes.byref(about))
        number, shape = self._about(about)
        self.release("TensorTypeAndShapeInfo", about)
        if number in TYPES and number != STRING and 0 not in shape:
            self("GetTensorMutableData", value, ctypes.byref(data))
            interface = {"version": 3, "data": (data.value, False), "typestr": WRITTEN[number], "shape": shape}
            return np.asarray(_Held(value, interface, self.release))
        try:
            if number not in TYPES:
                raise TypeError(f"NumPy has no element type for number {number} of ONNX Runtime's")
            texts = self._strings(value, int(np.prod(shape))) if number == STRING else []
            return np.array(texts, TYPES[number][1]).reshape(shape)
        finally:
            self.release("Value", value)

    def _about(self, about: ctypes.c_void_p) -> tuple[int, tuple[int, ...]]:
        """Return the element type and the dimensions of a tensor, -1 for what is not fixed."""
        number, rank = ctypes.c_int(), ctypes.c_size_t()
        self("GetTensorElementType", about, ctypes.byref(number))
        self("GetDimensionsCount", about, ctypes.byref(rank))
        sizes = (ctypes.c_int64 * rank.value)()
        self("GetDimensions", about, sizes, rank)
        return number.value, tuple(sizes)

    def _strings(self, value: ctypes.c_void_p, count: int) -> list[str]:
        size = ctypes.c_size_t()
        self("GetStringTensorDataLength", value, ctypes.byref(size))
        text, starts = ctypes.create_string_buffer(size.value), (ctypes.c_size_t * (count + 1))()
        self("GetStringTensorContent", value, text, size, starts, ctypes.c_size_t(count))
        starts[count] = size.value
        return [text.raw[starts[each] : starts[each + 1]].decode() for each in range(count)]

    def arguments(self, session: ctypes.c_void_p, which: str) -> list[NodeArg]:
        """Return a session's inputs or outputs."""
        count = ctypes.c_size_t()
        self(f"SessionGet{which}Count", session, ctypes.byref(count))
        return [self._argument(session, which, ctypes.c_size_t(number)) for number in range(count.value)]

    def _argument(self, session: ctypes.c_void_p, which: str, number: ctypes.c_size_t) -> NodeArg:
        text, about, tensor, kind = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        self(f"SessionGet{which}Name", session, number, self._allocator, ctypes.byref(text))
        name = ctypes.string_at(text.value or 0).decode()
        self("AllocatorFree", self._allocator, text)
        self(f"SessionGet{which}TypeInfo", session, number, ctypes.byref(about))
        self("GetOnnxTypeFromTypeInfo", about, ctypes.byref(kind))
        self("CastTypeInfoToTensorInfo", about, ctypes.byref(tensor))
        if kind.value != TENSOR:
            found = NodeArg(name, KINDS.get(kind.value, ""), [])
        else:
            element, shape = self._about(tensor)
            names = (ctypes.c_char_p * len(shape))()
            self("GetSymbolicDimensions", tensor, names, ctypes.c_size_t(len(shape)))
            words = [(word or b"").decode() or None for word in names]
            sizes = [size if size >= 0 else word for size, word in zip(shape, words, strict=True)]
            found = NodeArg(name, f"tensor({TYPES.get(element, ('?', ''))[0]})", sizes)
        self.release("TypeInfo", about)
        return found


@cache
def _api() -> _Api:
    """Return the library's functions; it is opened when the first session is made, and stays."""
    return _Api()
