"""Runs one case of a model in one inference engine and times it; or has the engine convert the model.

Runs inside the engine's own Python, which need not see ortrim: the standard library, NumPy and the engine are all that
is imported. Called with the path of a request in JSON; writes `answer.json` beside it, and into `stage` what it is at,
so that a crash can be told by where it came. What each engine does lies in `engine_<name>.py` beside this file:
`version()`, `load(request) -> run`, where `run` takes and returns lists of arrays, and, for an engine with a form of
its own, `convert(request)`.
"""

import contextlib
import importlib
import json
import os
import runpy
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

limit_memory = runpy.run_path(str(Path(__file__).parents[1] / "memory.py"))["limit_memory"]
Arrays = list[Any]
LONGEST_WORDS = 2000


def main(request_path: Path) -> None:
    """Answer `{"status": "ok", ...}`, or `{"status": "error", "stage": ..., "message": ...}`."""
    request = json.loads(request_path.read_text(encoding="utf-8"))
    folder = request_path.parent
    limit_memory(request["memory_bytes"])
    stage = Stage(folder / "stage")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            answer = converted(request, stage) if request["action"] == "convert" else ran(request, stage)
    except BaseException as error:  # noqa: BLE001 - engines raise kinds of their own, panics of Rust among them
        message = f"{type(error).__name__}: {error}"[:LONGEST_WORDS]
        answer = {"status": "error", "stage": stage.name, "message": message}
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


class Stage:
    """What is being done, in a file that outlives a crash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = ""

    def __call__(self, name: str) -> None:
        """Begin a stage."""
        self.name = name
        self.path.write_text(name, encoding="utf-8")


def converted(request: dict[str, Any], stage: Stage) -> dict[str, Any]:
    """Convert a copy of the model into the engine's own form, in `request["converted"]`.

    A copy, with the files beside it that may hold its weights, because onnx2tf writes over the file that it is given.
    """
    stage("import")
    engine = importlib.import_module(f"engine_{request['engine']}")
    stage("convert")
    model = Path(request["model"])
    with tempfile.TemporaryDirectory(dir=request["converted"]) as folder:
        copy = shutil.copytree(model.parent, Path(folder) / "copy") / model.name
        started = time.perf_counter()
        engine.convert({**request, "model": str(copy)})
        seconds = time.perf_counter() - started
    return {"status": "ok", "version": engine.version(), "convert_ms": 1e3 * seconds}


def ran(request: dict[str, Any], stage: Stage) -> dict[str, Any]:
    """Load the model, run the case once and keep what comes out, then warm up and take times."""
    feeds = [np.load(file, allow_pickle=False) for file in request["inputs"]]
    before = memory_before()
    stage("import")
    started = time.perf_counter()
    engine = importlib.import_module(f"engine_{request['engine']}")
    opened = time.perf_counter()
    stage("load")
    run = engine.load(request)
    loaded = time.perf_counter()
    loaded_bytes = status_bytes("VmRSS")
    stage("run")
    outputs = run(feeds)
    first = time.perf_counter()
    saved = [save(request, index, each) for index, each in enumerate(outputs)]
    samples, processor = timed(lambda: run(feeds), request)
    return {
        "status": "ok",
        "version": engine.version(),
        "open_ms": 1e3 * (opened - started),
        "load_ms": 1e3 * (loaded - opened),
        "first_run_ms": 1e3 * (first - loaded),
        "samples_ms": samples,
        "processor_ms": processor,
        "loaded_bytes": loaded_bytes - before,
        "peak_bytes": status_bytes("VmHWM") - before,
        "outputs": saved,
        "libraries": mapped_libraries(request),
    }


def timed(run: Callable[[], object], request: dict[str, Any]) -> tuple[list[float], float]:
    """Return the time of each run, and what one took of the processor, all threads together."""
    for _ in range(request["warmup"]):
        run()
    samples: list[float] = []
    began, used = time.perf_counter(), time.process_time()
    while len(samples) < request["runs"]:
        started = time.perf_counter()
        run()
        ended = time.perf_counter()
        samples.append(1e3 * (ended - started))
        if ended - began > request["seconds"]:
            break
    return samples, 1e3 * (time.process_time() - used) / len(samples)


def save(request: dict[str, Any], index: int, value: Any) -> dict[str, Any]:
    """Write one output and describe it; engines that know fewer integer types than the model has give smaller ones."""
    array = np.asarray(value)
    wanted = np.dtype(request["output_types"][index] if index < len(request["output_types"]) else array.dtype)
    if wanted.kind in "iub" and array.dtype.kind in "iub":
        array = array.astype(wanted)
    name = f"output_{index:03}.npy"
    np.save(Path(request["outputs"]) / name, array, allow_pickle=False)
    return {"file": name, "element_type": array.dtype.name, "shape": list(array.shape)}


def memory_before() -> int:
    """Forget the highest use so far, where the kernel can, and return what the process has."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return status_bytes("VmRSS")


def status_bytes(key: str) -> int:
    """Return a line of the kernel's account of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return 0


def mapped_libraries(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the native libraries of the engine that this process has opened, with their sizes."""
    roots = [os.path.realpath(root) for root in request["library_roots"]]
    words = (line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines())
    files = {each[5] for each in words if len(each) == 6 and each[5].startswith("/")}
    return [
        {"name": name, "bytes": Path(file).stat().st_size}
        for file in sorted(files)
        if (name := own(file, roots, request["others"]))
    ]


def own(file: str, roots: list[str], others: list[str]) -> str:
    """Return a library's name below the engine's folder, empty for one of `others` or from elsewhere."""
    for root in roots:
        name = os.path.relpath(file, root)
        if name == ".":
            return os.path.basename(root)  # noqa: PTH119 - no need of a path
        first = name.split("/", maxsplit=1)[0]
        if first != ".." and ".so" in name and first.split(".")[0] not in others:
            return name
    return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
