"""What the full runtime finds with the demo's model, frame by frame."""

import os
from pathlib import Path

import numpy as np
import onnxruntime


def probabilities(model: Path, frames: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[float]:
    """Return the probability of a voice in each frame of a stream."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(os.fspath(model), options)
    state, found = np.zeros((2, 1, 128), np.float32), []
    for frame in frames:
        given = {"input": frame[np.newaxis], "sr": np.array(16_000, np.int64), "state": state}
        output, state = session.run(["output", "stateN"], given)
        found.append(float(output.item()))
    return found
