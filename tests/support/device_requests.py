"""What devices are asked to run in tests: the real runner with the real library, or a script in the runner's place."""

import shutil
from pathlib import Path
from typing import Final

import onnx
import onnxruntime
from onnx import TensorProto, helper

from ortrim.base.command import run
from ortrim.base.files import sha256_of, shipped_folder
from ortrim.buildspec.buildspec import CaseSpec, ModelSpec
from ortrim.models.full_runtime import full_runtime
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import facts_of
from ortrim.parity.inputs import make_cases
from ortrim.parity.runner import Repetition, RunRequest
from ortrim.pins.runtime import runtime_pins
from ortrim.sources.sources import fetch_sources

HEADERS: Final = Path("onnxruntime/include/onnxruntime/core/session")
LIMIT_SECONDS: Final = 20.0


def script_request(folder: Path, script: str, *, timeout_seconds: float = LIMIT_SECONDS, size: int = 10) -> RunRequest:
    """Return a request whose runner is a shell script; library and model are files that nothing reads."""
    folder.mkdir(parents=True, exist_ok=True)
    runner, library, model = folder / "runner", folder / "libonnxruntime.so", folder / "model.ort"
    runner.write_text(f"#!/bin/sh\n{script}\n")
    library.write_bytes(bytes(size))
    model.write_bytes(b"a model")
    repetition = Repetition(timeout_seconds=timeout_seconds)
    return RunRequest(runner=runner, library=library, model=model, cases=(), repetition=repetition)


def real_request(folder: Path) -> RunRequest:
    """Return a request for the runner, compiled by gcc, the official wheel's library and a model of two nodes."""
    folder.mkdir(parents=True, exist_ok=True)
    model = _model(folder)
    cases = (CaseSpec(name="one"), CaseSpec(name="many", dimensions={"n": 7}))
    made = make_cases(model, ModelSpec(name="model", path=model.path, cases=cases), folder, folder / "cases")
    return RunRequest(
        runner=_runner(folder),
        library=full_runtime(onnxruntime.__version__, None).library,
        model=model.path,
        cases=made,
        outputs=folder / "outputs",
        repetition=Repetition(runs=5, warmup=1, timeout_seconds=60),
    )


def _model(folder: Path) -> PreparedModel:
    shape = ("n", 3)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
    nodes = [helper.make_node("Add", ["x", "x"], ["s"]), helper.make_node("Tanh", ["s"], ["y"])]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / "model.onnx"
    onnx.save(model, path)
    return PreparedModel(name="model", path=path, facts=facts_of(model, sha256_of(path), 1, "model"))


def _runner(folder: Path) -> Path:
    headers = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / HEADERS
    path = folder / "runner"
    compiler = shutil.which("gcc") or "cc"
    sources = sorted(shipped_folder("runner").glob("*.c"))
    done = run((compiler, "-std=c11", "-O1", f"-I{headers}", *sources, "-o", path, "-ldl", "-lpthread"))
    assert done.returncode == 0, done.stderr
    return path
