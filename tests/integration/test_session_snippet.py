"""The C++ of docs/start/linux.md, compiled and run on the wheel's library."""

import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.models.full_runtime import full_runtime
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

DOCUMENT = Path(__file__).parents[2] / "docs" / "start" / "linux.md"
MAIN = """
#include <cstdio>
int main(int, char** words) {
  Ort::Env environment(ORT_LOGGING_LEVEL_ERROR);
  MappedModel model(words[1]);
  Ort::Session session = session_with(environment, model);
  float given[256] = {2};
  const int64_t shape[] = {256};
  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  Ort::Value input = Ort::Value::CreateTensor<float>(memory, given, 256, shape, 1);
  const char* inputs[] = {"x"};
  const char* outputs[] = {"y"};
  auto result = session.Run(Ort::RunOptions(), inputs, &input, 1, outputs, 1);
  std::printf("%.1f", result[0].GetTensorData<float>()[0]);
}
"""


def compiler() -> tuple[str, ...]:
    """Return the system's C++ compiler, or the pinned one, which has to make its C++ library first."""
    if found := shutil.which("g++"):
        return (found,)
    return (str(packages_folder("tools", tool_requirements()) / "ziglang" / "zig"), "c++")


def adding_model(path: Path) -> Path:
    """Write a model in ORT format whose weights are large enough to be used in place."""
    weights = numpy_helper.from_array(np.full(256, 40, np.float32), "w")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (256,)) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    onnx.checker.check_model(model)
    return path


def test_the_documented_cplusplus_loads_a_model_in_place(tmp_path: Path) -> None:
    """It compiles without a warning, and the mapped weights are those that are added."""
    (code,) = re.findall(r"```cpp\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "main.cpp").write_text(code + MAIN, encoding="utf-8")
    tree = fetch_sources(runtime_pins(onnxruntime.__version__), "auto")
    headers = tree.folder / "onnxruntime" / "include" / "onnxruntime" / "core" / "session"
    library = full_runtime(onnxruntime.__version__, None).library
    (tmp_path / "libonnxruntime.so.1").symlink_to(library)
    words = ("-std=c++17", "-Wall", "-Wextra", "-Werror", "-isystem", headers, tmp_path / "main.cpp", library)
    built = run([*compiler(), *words, f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "program"])
    assert built.returncode == 0, built.stderr
    done = run([tmp_path / "program", adding_model(tmp_path / "model.ort")])
    assert (done.returncode, done.stdout) == (0, "42.0"), done.stderr
