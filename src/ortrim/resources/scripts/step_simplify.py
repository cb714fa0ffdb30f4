"""Simplify a model by onnxslim or onnxsim.

Runs in a Python that has the program and what it needs, and behind that the full runtime. Called with the path of a
request in JSON; writes its answer beside it.
"""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

import onnx


def main(request_path: Path) -> None:
    """Answer a request: `{}` when the model is written, else `{"failure": ...}` in `answer.json`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    try:
        answer = simplified(request)
    except Exception as error:  # noqa: BLE001 - whatever the program raises is the answer
        answer = {"failure": words_of(error)}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def simplified(request: dict[str, Any]) -> dict[str, Any]:
    """Write the simplified model, unless it is swollen beyond what may be: then say how large it is."""
    model = PROGRAMS[request["by"]](onnx.load(request["model"]))
    size = model.ByteSize()
    if size > request["most_bytes"]:
        return {"swollen": size}
    onnx.save(model, request["output"])
    return {}


def by_onnxslim(model: onnx.ModelProto) -> Any:
    """Return the model that onnxslim makes; where it finds no onnxruntime it folds no constants, and says nothing."""
    import onnxruntime  # noqa: F401, PLC0415 - it has to be there
    import onnxslim  # noqa: PLC0415 - one of the programs is there

    return onnxslim.slim(model)


def by_onnxsim(model: onnx.ModelProto) -> Any:
    """Return the model that onnxsim makes."""
    import onnxsim  # noqa: PLC0415 - one of the programs is there

    return onnxsim.simplify(model)[0]


def words_of(error: Exception) -> str:
    """Say what was raised, with the line that raised it: assertions often say nothing themselves."""
    line = traceback.extract_tb(error.__traceback__)[-1].line
    return f"{type(error).__name__}: {str(error) or line}"


PROGRAMS = {"onnxslim": by_onnxslim, "onnxsim": by_onnxsim}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
