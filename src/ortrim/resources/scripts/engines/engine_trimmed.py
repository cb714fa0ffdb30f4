"""A trimmed ONNX Runtime by its C API, with the converted model and the session's settings that go with it.

The functions of `OrtApi` are called by their places in it, which never change: new ones are put at its end
(`onnxruntime_c_api.h`).
"""

import ctypes
import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Arrays = list[Any]
API_VERSION = 16
ERROR = 3
CPU_ARENA, DEFAULT_MEMORY = 1, 0
PLACES = {
    "GetErrorMessage": 2,
    "CreateEnv": 3,
    "CreateSession": 7,
    "CreateSessionFromArray": 8,
    "Run": 9,
    "CreateSessionOptions": 10,
    "DisableMemPattern": 17,
    "DisableCpuMemArena": 19,
    "SetSessionGraphOptimizationLevel": 23,
    "SetIntraOpNumThreads": 24,
    "SetInterOpNumThreads": 25,
    "CreateTensorWithDataAsOrtValue": 49,
    "GetTensorMutableData": 51,
    "GetTensorElementType": 60,
    "GetDimensionsCount": 61,
    "GetDimensions": 62,
    "GetTensorTypeAndShape": 65,
    "CreateCpuMemoryInfo": 69,
    "ReleaseValue": 96,
    "ReleaseTensorTypeAndShapeInfo": 99,
    "AddSessionConfigEntry": 130,
    "SessionOptionsAppendExecutionProvider": 216,
}
LEVELS = {"none": 0, "basic": 1, "extended": 2, "all": 99}
TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
NAMES = {number: name for name, number in TYPES.items()}
KEPT: list[Any] = []
"""What has to outlive the session: the library, and the model's bytes."""


class ApiBase(ctypes.Structure):
    """`OrtApiBase`."""

    _fields_ = (
        ("get_api", ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)),
        ("get_version", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


class Api:
    """The functions of `OrtApi`, by name; each raises RuntimeError with the runtime's own words."""

    def __init__(self, base: ApiBase) -> None:
        self.functions = base.get_api(API_VERSION)
        self.typed: dict[str, Any] = {}

    def __call__(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a status."""
        if name not in self.typed:
            kind = ctypes.CFUNCTYPE(ctypes.c_void_p, *map(kind_of, arguments))
            self.typed[name] = kind(self.functions[PLACES[name]])
        status = self.typed[name](*arguments)
        if status:
            words = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(self.functions[PLACES["GetErrorMessage"]])
            raise RuntimeError(words(status).decode(errors="replace"))

    def release(self, kind: str, value: ctypes.c_void_p) -> None:
        """Call a function that returns nothing."""
        if kind not in self.typed:
            place = PLACES[f"Release{kind}"]
            self.typed[kind] = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.functions[place])
        self.typed[kind](value)


def kind_of(argument: Any) -> Any:
    """Return the C type of an argument: numbers and names as they are, all else as a pointer."""
    known = (ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p)
    return next((kind for kind in known if isinstance(argument, kind)), ctypes.c_void_p)


def version() -> str:
    """Return the version of the library that was opened."""
    words: bytes = KEPT[0].get_version()
    return words.decode()


def load(request: dict[str, Any]) -> Callable[[Arrays], Arrays]:
    """Open the library, which is no import, and make a session."""
    library = ctypes.CDLL(request["library"])
    library.OrtGetApiBase.restype = ctypes.POINTER(ApiBase)
    base = library.OrtGetApiBase().contents
    KEPT.append(base)
    api = Api(base)
    session = Session(api, request)
    return session.run


class Session:
    """A session with its inputs and outputs bound: an application with fixed shapes does that once, not in each run."""

    def __init__(self, api: Api, request: dict[str, Any]) -> None:
        self.api = api
        self.inputs = names_of(request["input_names"])
        self.outputs = names_of(request["output_names"])
        self.memory = ctypes.c_void_p()
        api("CreateCpuMemoryInfo", ctypes.c_int(CPU_ARENA), ctypes.c_int(DEFAULT_MEMORY), ctypes.byref(self.memory))
        self.session = created(api, request)
        self.feeds: Arrays = []
        self.given = (ctypes.c_void_p * len(self.inputs))()
        self.made = (ctypes.c_void_p * len(self.outputs))()
        self.arrays: Arrays = []

    def run(self, feeds: Arrays) -> Arrays:
        """Run once; the same arrays given again are not bound anew, and the outputs lie in the same memory then."""
        if feeds is not self.feeds:
            return self.bind(feeds)
        counts = ctypes.c_size_t(len(self.inputs)), ctypes.c_size_t(len(self.outputs))
        self.api("Run", self.session, None, self.inputs, self.given, counts[0], self.outputs, counts[1], self.made)
        return self.arrays

    def bind(self, feeds: Arrays) -> Arrays:
        """Take the arrays' memory as inputs, and run once, as the outputs' shapes are not known before."""
        self.feeds = feeds
        self.given[:] = [self.value(feed).value for feed in feeds]
        counts = ctypes.c_size_t(len(self.inputs)), ctypes.c_size_t(len(self.outputs))
        self.api("Run", self.session, None, self.inputs, self.given, counts[0], self.outputs, counts[1], self.made)
        self.arrays = [self.array(ctypes.c_void_p(each)) for each in self.made]
        for each in self.made:
            self.api.release("Value", ctypes.c_void_p(each))
        self.made[:] = [self.value(array).value for array in self.arrays]
        return self.arrays

    def value(self, array: Any) -> ctypes.c_void_p:
        """Return an array's memory as a value."""
        value = ctypes.c_void_p()
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        size, rank = ctypes.c_size_t(array.nbytes), ctypes.c_size_t(array.ndim)
        kind = ctypes.c_int(TYPES[array.dtype.name])
        data = ctypes.c_void_p(array.ctypes.data)
        self.api("CreateTensorWithDataAsOrtValue", self.memory, data, size, shape, rank, kind, ctypes.byref(value))
        return value

    def array(self, value: ctypes.c_void_p) -> Any:
        """Return a copy of a value."""
        about, data = ctypes.c_void_p(), ctypes.c_void_p()
        kind, rank = ctypes.c_int(), ctypes.c_size_t()
        self.api("GetTensorTypeAndShape", value, ctypes.byref(about))
        self.api("GetTensorElementType", about, ctypes.byref(kind))
        self.api("GetDimensionsCount", about, ctypes.byref(rank))
        sizes = (ctypes.c_int64 * rank.value)()
        self.api("GetDimensions", about, sizes, rank)
        self.api.release("TensorTypeAndShapeInfo", about)
        self.api("GetTensorMutableData", value, ctypes.byref(data))
        array = np.empty(tuple(sizes), NAMES[kind.value])
        ctypes.memmove(array.ctypes.data, data, array.nbytes)
        return array


def names_of(names: list[str]) -> Any:
    """Return names as C has them."""
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


def created(api: Api, request: dict[str, Any]) -> ctypes.c_void_p:
    """Make a session as `request["session"]` says, in the words of ortrim's `SessionSettings`."""
    environment, session = ctypes.c_void_p(), ctypes.c_void_p()
    settings = request["session"]
    api("CreateEnv", ctypes.c_int(ERROR), ctypes.c_char_p(b"compare"), ctypes.byref(environment))
    options = options_of(api, settings)
    if settings["load"] == "file":
        model = ctypes.c_char_p(os.fsencode(request["model"]))
        api("CreateSession", environment, model, options, ctypes.byref(session))
        return session
    data = np.frombuffer(bytes_of(request["model"], settings["load"]), dtype=np.uint8)
    KEPT.append(data)
    place, size = ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes)
    api("CreateSessionFromArray", environment, place, size, options, ctypes.byref(session))
    return session


def bytes_of(path: str, way: str) -> Any:
    """Return a model's bytes, mapped or read."""
    if way == "bytes":
        return Path(path).read_bytes()
    with Path(path).open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def options_of(api: Api, settings: dict[str, Any]) -> ctypes.c_void_p:
    """Return the options of a session."""
    options = ctypes.c_void_p()
    api("CreateSessionOptions", ctypes.byref(options))
    api("SetIntraOpNumThreads", options, ctypes.c_int(settings["threads"]))
    api("SetInterOpNumThreads", options, ctypes.c_int(settings["inter_op_threads"]))
    if settings["optimization_level"]:
        api("SetSessionGraphOptimizationLevel", options, ctypes.c_int(LEVELS[settings["optimization_level"]]))
    if not settings["arena"]:
        api("DisableCpuMemArena", options)
    if not settings["memory_pattern"]:
        api("DisableMemPattern", options)
    for name in settings["providers"]:
        named = ctypes.c_char_p(name.encode())
        api("SessionOptionsAppendExecutionProvider", options, named, None, None, ctypes.c_size_t(0))
    for key, value in settings["configuration"]:
        api("AddSessionConfigEntry", options, ctypes.c_char_p(key.encode()), ctypes.c_char_p(value.encode()))
    return options
