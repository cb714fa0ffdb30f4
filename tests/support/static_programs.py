"""Programs of applications for a package's library: three that run or open a model, one of them twice, and a crash."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ortrim.base.command import run

IN_C: Final = """
#include <onnxruntime_c_api.h>
#include <stdio.h>
int main(int count, char **words) {
  const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  OrtEnv *env = NULL;
  OrtSessionOptions *options = NULL;
  OrtSession *session = NULL;
  size_t inputs = 0;
  if (count != 2 || api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "c", &env) || api->CreateSessionOptions(&options) ||
      api->CreateSession(env, words[1], options, &session) || api->SessionGetInputCount(session, &inputs))
    return 1;
  printf("%s, %zu inputs\\n", OrtGetApiBase()->GetVersionString(), inputs);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseEnv(env);
  return 0;
}
"""
IN_CXX: Final = """
#include <onnxruntime_cxx_api.h>
#include <array>
#include <iostream>
#include <vector>
int main(int, char **words) try {
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "c++");
  Ort::Session session(env, words[1], Ort::SessionOptions{});
  auto memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeCPU);
  std::vector<float> sound(576), state(2 * 128);
  std::vector<int64_t> rate{16000};
  std::array<int64_t, 2> frame{1, 576};
  std::array<int64_t, 3> states{2, 1, 128};
  std::vector<Ort::Value> inputs;
  inputs.push_back(Ort::Value::CreateTensor<float>(memory, sound.data(), sound.size(), frame.data(), frame.size()));
  inputs.push_back(Ort::Value::CreateTensor<float>(memory, state.data(), state.size(), states.data(), states.size()));
  inputs.push_back(Ort::Value::CreateTensor<int64_t>(memory, rate.data(), rate.size(), nullptr, 0));
  const char *in[] = {"input", "state", "sr"}, *out[] = {"output", "stateN"};
  auto outputs = session.Run(Ort::RunOptions{}, in, inputs.data(), inputs.size(), out, 2);
  float voice = *outputs[0].GetTensorData<float>();
  std::cout << Ort::GetVersionString() << ", " << (voice >= 0 && voice < 0.5 ? "silence" : "a voice") << std::endl;
} catch (const Ort::Exception &error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
"""
CLOSES: Final = """
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
int main(int count, char **words) {
  for (int i = 0; i < 2; i++) {
    void *library = dlopen("libonnxruntime.so.1", RTLD_NOW);
    const OrtApiBase *(*base)(void) = library ? (const OrtApiBase *(*)(void))dlsym(library, "OrtGetApiBase") : NULL;
    const OrtApi *api = base ? base()->GetApi(ORT_API_VERSION) : NULL;
    OrtEnv *env = NULL;
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    if (count != 2 || !api || api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "c", &env) ||
        api->CreateSessionOptions(&options) || api->CreateSession(env, words[1], options, &session))
      return 1;
    api->ReleaseSession(session);
    api->ReleaseSessionOptions(options);
    api->ReleaseEnv(env);
    if (dlclose(library)) return 2;
    puts(dlopen("libonnxruntime.so.1", RTLD_NOW | RTLD_NOLOAD) ? "still there" : "closed");
  }
  return 0;
}
"""
CRASHES: Final = """
#include <onnxruntime_c_api.h>
int main(int count, char **words) {
  const OrtApi *api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  OrtEnv *env = NULL;
  OrtSessionOptions *options = NULL;
  OrtSession *session = NULL;
  OrtMemoryInfo *memory = NULL;
  OrtValue *values[3] = {NULL}, *results[2] = {NULL};
  const char *inputs[] = {"input", "state", "sr"}, *outputs[] = {"output", "stateN"};
  int64_t frame[] = {1, 576}, states[] = {2, 1, 128}, rate = 16000;
  float state[2 * 128] = {0};
  void *nowhere = (void *)64;
  if (count != 2 || api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "c", &env) || api->CreateSessionOptions(&options) ||
      api->SetIntraOpNumThreads(options, 1) || api->CreateSession(env, words[1], options, &session) ||
      api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory) ||
      api->CreateTensorWithDataAsOrtValue(memory, nowhere, 576 * sizeof(float), frame, 2,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &values[0]) ||
      api->CreateTensorWithDataAsOrtValue(memory, state, sizeof(state), states, 3,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &values[1]) ||
      api->CreateTensorWithDataAsOrtValue(memory, &rate, sizeof(rate), NULL, 0,
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &values[2]))
    return 1;
  return api->Run(session, NULL, inputs, (const OrtValue *const *)values, 3, outputs, 2, results) != NULL;
}
"""
"""A program in C whose first kernel reads an address at which there is nothing."""
SAID_IN_C: Final = "1.21.0, 3 inputs\n"
SAID_IN_CXX: Final = "1.21.0, silence\n"


def linked(package: Path, compiler: Sequence[str | Path], source: str, program: Path) -> Path:
    code = program.with_suffix(".cc" if source is IN_CXX else ".c")
    code.write_text(source)
    words = (code, "-o", program, f"-I{package}/include/onnxruntime", f"-L{package}/lib", "-lonnxruntime")
    done = run((*compiler, *words, "-ldl", "-lpthread", "-lm"))
    assert done.returncode == 0, done.stderr
    return program


def said(program: Path, package: Path, *launcher: str | Path) -> str:
    done = run((*launcher, program, package / "models" / "silero-vad.ort"))
    assert done.returncode == 0, done.stderr
    return done.stdout
