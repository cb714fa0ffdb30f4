"""The newest models that a full ONNX Runtime loads, found by trying."""

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError
from ortrim.models.scripts import run_script
from ortrim.tools.full_runtime import FullRuntime

LEAST_OPSET: Final = 22
LEAST_IR_VERSION: Final = 10
"""What the oldest version that ortrim knows loads."""
MOST_TRIALS: Final = 64


@dataclass(frozen=True, kw_only=True)
class ModelLimits:
    """The highest opset of the default domain, and the highest IR version, that a version of ONNX Runtime loads."""

    max_opset: int
    max_ir_version: int


def model_limits(runtime: FullRuntime) -> ModelLimits:
    """Return the limits of a full runtime. Raises `SourcesError` `no-model-limits`, and as `run_script` does."""
    with tempfile.TemporaryDirectory(prefix="ortrim-limits-") as name:
        folder = Path(name)
        opset = _highest(LEAST_OPSET, runtime, lambda value: _loads(runtime, folder, value, LEAST_IR_VERSION))
        version = _highest(LEAST_IR_VERSION, runtime, lambda value: _loads(runtime, folder, LEAST_OPSET, value))
    return ModelLimits(max_opset=opset, max_ir_version=version)


def _highest(least: int, runtime: FullRuntime, loads: Callable[[int], bool]) -> int:
    """Return the number before the first that is refused."""
    tried = itertools.islice(itertools.count(least), MOST_TRIALS)
    highest = next((value - 1 for value in tried if not loads(value)), None)
    if highest is None or highest < least:
        what = "loads every model, whatever it says" if highest is None else "does not load the simplest model"
        raise SourcesError("no-model-limits", what, where=f"ONNX Runtime {runtime.version}")
    return highest


def _loads(runtime: FullRuntime, folder: Path, opset: int, ir_version: int) -> bool:
    model = folder / "model.onnx"
    model.write_bytes(_model(opset, ir_version))
    return not run_script(runtime, "load.py", {"model": str(model)}, folder=folder, where=f"opset {opset}")


def _model(opset: int, ir_version: int) -> bytes:
    """Return a model that hands over what it gets, stamped as said, whether or not there is such a stamp."""
    from onnx import TensorProto, helper  # noqa: PLC0415 - slow to import

    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", ends[:1], ends[1:])
    domains = [helper.make_operatorsetid("", opset)]
    content: bytes = helper.make_model(graph, opset_imports=domains, ir_version=ir_version).SerializeToString()
    return content
