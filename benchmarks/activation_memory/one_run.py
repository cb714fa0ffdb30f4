"""Load a model, run it once to warm up, and tell by how much the process grows in a second run.

Runs inside the full runtime's own Python. Without arena, memory pattern and threads, and with a C library that gives
memory back at once (`MALLOC_MMAP_THRESHOLD_`, `MALLOC_TRIM_THRESHOLD_`), what grows is what the run takes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

RESET_PEAK = "5"
"""Of `/proc/self/clear_refs`: the peak begins anew at what is resident (`proc_pid_clear_refs(5)`)."""
RUNS = 3


def main(request_path: Path) -> None:
    """Answer `{"growth_bytes": [...]}`, one for each of three runs after the first."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    session = onnxruntime.InferenceSession(request["model"], options(), providers=["CPUExecutionProvider"])
    inputs = {name: np.random.default_rng(0).random(shape, np.float32) for name, shape in request["shapes"].items()}
    session.run(None, inputs)
    growths = [growth(session, inputs) for _ in range(RUNS)]
    request_path.with_name("answer.json").write_text(json.dumps({"growth_bytes": growths}), encoding="utf-8")


def options() -> onnxruntime.SessionOptions:
    """Run the very nodes of the file, and keep no memory from one run to the next."""
    made = onnxruntime.SessionOptions()
    made.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    made.enable_cpu_mem_arena = False
    made.enable_mem_pattern = False
    made.intra_op_num_threads = 1
    return made


def growth(session: onnxruntime.InferenceSession, inputs: dict[str, Any]) -> int:
    """Return the bytes by which the peak of one run, its inputs included, is above what was resident before."""
    Path("/proc/self/clear_refs").write_text(RESET_PEAK, encoding="ascii")
    before = resident()["VmRSS"]
    session.run(None, {name: value.copy() for name, value in inputs.items()})
    return resident()["VmHWM"] - before


def resident() -> dict[str, int]:
    """Return the process's resident memory, now and at its peak, in bytes."""
    lines = (line.split() for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines if line and line[0] in {"VmRSS:", "VmHWM:"}}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
