"""Run a model before and after a step on the same inputs, and say how far its float outputs are apart.

Runs inside the full runtime's own Python, so it imports only the standard library, NumPy and onnxruntime. Called with
the path of a request in JSON; writes its answer beside it.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

SILENT = 4
FLOATS = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}


def main(request_path: Path) -> None:
    """Answer `{"outputs": [{"name", "decibels", "largest", "range", "agreement"}]}`, or `{"words": words}`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    onnxruntime.set_default_logger_severity(SILENT)
    try:
        answer: dict[str, Any] = {"outputs": compared(request["before"], request["after"], request["data"])}
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is the answer
        answer = {"words": f"{type(error).__name__}: {error}"}
    request_path.with_name("answer.json").write_text(json.dumps(answer), encoding="utf-8")


def compared(before: str, after: str, paths: list[str]) -> list[dict[str, Any]]:
    """Return what is found over all sets of inputs, for each output of floats that both models have."""
    sessions = [opened(model) for model in (before, after)]
    kinds = [{value.name for value in session.get_outputs() if value.type in FLOATS} for session in sessions]
    names = [value.name for value in sessions[0].get_outputs() if value.name in kinds[0] & kinds[1]]
    found: dict[str, list[tuple[Any, Any]]] = {name: [] for name in names}
    # Asked for no outputs at all, a session gives all of them.
    for path in paths if names else ():
        with np.load(path, allow_pickle=False) as content:
            feeds = {name: content[name] for name in content.files}
        theirs, ours = (ran(session, feeds, names) for session in sessions)
        for name, one, other in zip(names, theirs, ours, strict=True):
            found[name].append((np.asarray(one, np.float64), np.asarray(other, np.float64)))
    return [{"name": name, **difference(pairs)} for name, pairs in found.items()]


def opened(model: str) -> onnxruntime.InferenceSession:
    """Open a session without optimizations, which could hide or add differences."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def ran(session: onnxruntime.InferenceSession, feeds: dict[str, Any], names: list[str]) -> list[Any]:
    """Run with inputs of the width that the model takes."""
    given = {
        value.name: feeds[value.name].astype(FLOATS[value.type]) if value.type in FLOATS else feeds[value.name]
        for value in session.get_inputs()
    }
    return list(session.run(names, given))


def difference(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Return how far outputs are apart: signal to noise, largest difference, range, rows of the same largest."""
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
    return [bool(same) for same in np.ravel(one.argmax(-1) == other.argmax(-1))]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
