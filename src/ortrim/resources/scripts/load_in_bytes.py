"""Create a session as an application does that keeps the model's bytes, by the C API of ONNX Runtime's own library.

The binding for Python frees the bytes before a session is initialized, so that nothing can be left in them. Imports
only the standard library. Called with the path of a request in JSON; writes its answer beside it.
"""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Any

API_VERSION = 11
MESSAGE, CREATE_ENVIRONMENT, FROM_FILE, FROM_BYTES, CREATE_OPTIONS, EXECUTION, NO_PATTERN, NO_ARENA = (
    2, 3, 7, 8, 10, 13, 17, 19,
)  # fmt: skip
SEVERITY, LEVEL, INTRA_OP, INTER_OP, ENTRY = 22, 23, 24, 25, 130
"""Places of functions in `OrtApi`, which keep them from version to version."""
LEVELS = {"none": 0, "basic": 1, "extended": 2, "all": 99, None: 99}
SILENT = 4


def main(request_path: Path) -> None:
    """Answer a request: `{}` when the model loads, else `{"failure": ..., "words": ...}` in `answer.json`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    words = load(ctypes.CDLL(request["library"]), request["model"], request["session"])
    answer = {"failure": "load-failed", "words": words} if words else {}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def load(library: Any, model: str, chosen: dict[str, Any]) -> str:
    """Create a session with ortrim's `SessionSettings`; return the runtime's words when it refuses."""
    call = caller(library)
    environment, options, session = (ctypes.c_void_p() for _ in range(3))
    settings: list[tuple[Any, ...]] = [
        (SEVERITY, SILENT),
        (INTRA_OP, chosen["threads"]),
        (INTER_OP, chosen["inter_op_threads"]),
        (EXECUTION, int(chosen["inter_op_threads"] > 1)),
        (LEVEL, LEVELS[chosen["optimization_level"]]),
        *([] if chosen["arena"] else [(NO_ARENA,)]),
        *([] if chosen["memory_pattern"] else [(NO_PATTERN,)]),
    ]
    spins = str(int(chosen["allow_spinning"]))
    spinning = [(f"session.{kind}.allow_spinning", spins) for kind in ("intra_op", "inter_op")]
    settings += [(ENTRY, key.encode(), value.encode()) for key, value in (*spinning, *chosen["configuration"])]
    file = ctypes.c_wchar_p(model) if os.name == "nt" else ctypes.c_char_p(model.encode())
    content = Path(model).read_bytes()
    source = (
        (FROM_FILE, environment, file)
        if chosen["load"] == "file"
        else (FROM_BYTES, environment, ctypes.c_char_p(content), ctypes.c_size_t(len(content)))
    )
    return (
        call(CREATE_ENVIRONMENT, SILENT, b"ortrim", ctypes.byref(environment))
        or call(CREATE_OPTIONS, ctypes.byref(options))
        or next(filter(None, (call(place, options, *values) for place, *values in settings)), "")
        or call(*source, options, ctypes.byref(session))
    )


def caller(library: Any) -> Any:
    """Return what calls a function of `OrtApi` by its place, and returns the words of a status that is an error."""
    library.OrtGetApiBase.restype = ctypes.POINTER(ctypes.c_void_p)
    get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)(library.OrtGetApiBase()[0])
    table = get_api(API_VERSION)
    message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(table[MESSAGE])

    def call(place: int, *values: Any) -> str:
        status = ctypes.CFUNCTYPE(ctypes.c_void_p)(table[place])(*values)
        return (message(status) or b"it gives no reason").decode(errors="replace") if status else ""

    return call


if __name__ == "__main__":
    main(Path(sys.argv[1]))
