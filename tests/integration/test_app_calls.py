"""What `api` finds in apps, with the real headers and bindings; a compiler says what apps of C++ really call."""

import re
import shutil
from pathlib import Path
from typing import Final

import pytest

from ortrim.analysis.api import SESSION, AppApi, api_of
from ortrim.base.command import run
from ortrim.base.console import Console
from ortrim.compiling.mechanisms import INFERENCE
from ortrim.pins.runtime import default_version, runtime_pins
from ortrim.sources.sources import fetch_sources

pytestmark = pytest.mark.network

ROOT: Final = Path(__file__).parents[2]
INFERS: Final = """
#include <onnxruntime_cxx_api.h>
#include <iostream>
int main(int, char** words) {
  auto env = Ort::Env{ORT_LOGGING_LEVEL_WARNING, "app"};
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1).AddConfigEntry("session.use_env_allocators", "0");
  Ort::Session session(env, words[1], options);
  Ort::AllocatorWithDefaultOptions allocator;
  for (size_t i = 0; i < session.GetInputCount(); ++i) {
    auto info = session.GetInputTypeInfo(i);
    std::cout << session.GetInputNameAllocated(i, allocator).get() << info.GetONNXType();
    for (auto size : info.GetTensorTypeAndShapeInfo().GetShape()) std::cout << size;
  }
  auto about = session.GetModelMetadata();
  std::cout << about.GetVersion() << about.GetProducerNameAllocated(allocator).get();
  float data[10] = {};
  int64_t shape[] = {1, 10};
  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  auto input = Ort::Value::CreateTensor<float>(memory, data, 10, shape, 2);
  const char *inputs[] = {"x"}, *outputs[] = {"y"};
  auto results = session.Run({}, inputs, &input, 1, outputs, 1);
  std::cout << results[0].GetTensorMutableData<float>()[0] << results[0].GetTensorTypeAndShapeInfo().GetElementCount();
  for (auto& name : Ort::GetAvailableProviders()) std::cout << name;
}
"""
EXTENDS: Final = """
#include <onnxruntime_cxx_api.h>
struct Kernel {
  Kernel(const OrtApi&, const OrtKernelInfo* info) : alpha(Ort::ConstKernelInfo{info}.GetAttribute<float>("alpha")) {}
  void Compute(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    auto x = context.GetInput(0);
    auto y = context.GetOutput(0, x.GetTensorTypeAndShapeInfo().GetShape());
    y.GetTensorMutableData<float>()[0] = alpha * x.GetTensorData<float>()[0];
  }
  float alpha;
};
struct Operator : Ort::CustomOpBase<Operator, Kernel> {
  void* CreateKernel(const OrtApi& api, const OrtKernelInfo* info) const { return new Kernel(api, info); }
  const char* GetName() const { return "Scale"; }
  size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
};
int main() {
  Operator scale;
  Ort::CustomOpDomain domain("app");
  domain.Add(&scale);
  Ort::SessionOptions options;
  options.Add(domain);
  Ort::Env env;
  Ort::Session session(env, "model.onnx", options);
  Ort::IoBinding binding(session);
  binding.BindOutput("y", Ort::MemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault));
  session.Run(Ort::RunOptions{nullptr}, binding);
  for (auto& value : binding.GetOutputValues()) value.IsTensor();
}
"""
SWIFT: Final = """
import onnxruntime_objc
let env = try ORTEnv(loggingLevel: .warning)
let session = try ORTSession(env: env, modelPath: path, sessionOptions: try ORTSessionOptions())
let outputs = try session.run(withInputs: ["x": input], outputNames: ["y"], runOptions: nil)
let data = try outputs["y"]!.tensorData()
"""


def found(*apps: Path) -> AppApi:
    """Return what `api` finds with the headers of the default version."""
    return api_of(apps, None, default_version(), Console())


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def linked_by_name(folder: Path) -> Path:
    """Write headers whose `OrtApi` has functions in the place of pointers, so that objects name what they call."""
    shutil.copytree(fetch_sources(runtime_pins(default_version()), "auto").folder / "onnxruntime" / SESSION, folder)
    header = folder / "onnxruntime_c_api.h"
    before, table, after = re.split(r"^(struct OrtApi \{.*?^\};)", header.read_text(), flags=re.DOTALL | re.MULTILINE)
    table = re.sub(r"//[^\n]*|/\*.*?\*/", "", table, flags=re.DOTALL)
    table = re.sub(r"ORT_API2_STATUS\((\w+),", r"static OrtStatus* \1(", table)
    table = re.sub(r"ORT_CLASS_RELEASE\((\w+)\)", r"static void Release\1(Ort\1* input)", table)
    table = re.sub(r"^([^\n()]*)\(ORT_API_CALL\s*\*\s*(\w+)\s*\)", r"static \1 \2", table, flags=re.MULTILINE)
    header.write_text(before + table + after)
    return folder


@pytest.mark.needs("g++")
@pytest.mark.parametrize("text", [INFERS, EXTENDS], ids=["infers", "extends"])
def test_everything_that_a_compiler_calls_is_found(tmp_path: Path, text: str) -> None:
    """An app that only infers has no more than a few others, and nothing that is not among those for inference."""
    app = written(tmp_path / "app.cc", text)
    words = ("-std=c++17", "-O0", "-Wno-deprecated-declarations", "-I", linked_by_name(tmp_path / "headers"))
    compiled = run(["g++", *words, "-c", app, "-o", tmp_path / "app.o"])
    assert compiled.returncode == 0, compiled.stderr
    real = set(re.findall(r"OrtApi::(\w+)\(", run(["nm", "-uC", tmp_path / "app.o"]).stdout))
    called = found(app)
    assert len(real) > 20
    assert real - called.calls.keys() == set()
    assert len(called.calls.keys() - real) <= len(real) / 2
    assert bool(called.beyond) == (text is EXTENDS)


def test_a_session_needs_no_binding(tmp_path: Path) -> None:
    """Though its method `Run` may take one."""
    called = found(written(tmp_path / "app.cc", INFERS)).calls
    assert {"CreateEnv", "CreateSession", "Run", "ReleaseSession", "ReleaseEnv", "ReleaseValue"} <= called.keys()
    assert {"CreateIoBinding", "RunWithBinding", "CreatePrepackedWeightsContainer"}.isdisjoint(called)


def test_our_own_runner_is_found_whole() -> None:
    """Each call of its sources, which are for inference but for `--trace`."""
    calls = {name for file in (ROOT / "runner").glob("*.c") for name in re.findall(r"api->(\w+)", file.read_text())}
    called = found(ROOT / "runner")
    assert len(calls) > 30
    assert calls - called.calls.keys() == set()
    assert set(called.calls) - INFERENCE == {"EnableProfiling", "SessionEndProfiling"}


def test_bindings_are_for_inference(tmp_path: Path) -> None:
    """An app of Java and one of Swift need nothing else, and have what runs a model."""
    java = ROOT / "tests/integration/data/android_app/src/main/java/ortrim/app/JavaApi.java"
    for app in (java, written(tmp_path / "App.swift", SWIFT)):
        called = found(app)
        assert called.beyond == ()
        assert {"CreateEnv", "CreateSession", "Run", "ReleaseSession", "ReleaseEnv"} <= called.calls.keys()
        assert len(called.spare) > 40
