// What an app does with ONNX Runtime to load a model, run it and ask about it; compiled by test_size_profile.py.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include "onnxruntime_cxx_api.h"

static void ask(const Ort::ConstTypeInfo& type) {
  auto tensor = type.GetTensorTypeAndShapeInfo();
  std::vector<const char*> names(tensor.GetDimensionsCount());
  tensor.GetSymbolicDimensions(names.data(), names.size());
  std::printf("  type %d, element %d, rank %zu\n", type.GetONNXType(), tensor.GetElementType(),
              tensor.GetShape().size());
}

static void log(void*, OrtLoggingLevel, const char*, const char*, const char*, const char*) {}

int main(int, char** words) {
  const char* path = words[1];
  std::printf("%s, %s\n", Ort::GetVersionString().c_str(), Ort::GetAvailableProviders().front().c_str());
  Ort::GetBuildInfoString();
  { Ort::Env logging(ORT_LOGGING_LEVEL_ERROR, "app", log, nullptr); } // a process has one at a time
  Ort::ThreadingOptions threads;
  threads.SetGlobalIntraOpNumThreads(1).SetGlobalInterOpNumThreads(1).SetGlobalSpinControl(0).SetGlobalDenormalAsZero();
  Ort::Env env(threads, ORT_LOGGING_LEVEL_ERROR, "app");
  env.UpdateEnvWithCustomLogLevel(ORT_LOGGING_LEVEL_FATAL).DisableTelemetryEvents();

  Ort::SessionOptions first;
  first.SetIntraOpNumThreads(1).SetInterOpNumThreads(1).SetGraphOptimizationLevel(ORT_DISABLE_ALL).EnableCpuMemArena()
      .DisableCpuMemArena().EnableMemPattern().DisableMemPattern().SetExecutionMode(ORT_SEQUENTIAL).SetLogId("session")
      .SetLogSeverityLevel(4).AddConfigEntry("session.load_model_format", "ORT").SetDeterministicCompute(true);
  Ort::SessionOptions options = first.Clone();
  std::printf("%d %s\n", options.HasConfigEntry("session.load_model_format"),
              options.GetConfigEntry("session.load_model_format").c_str());
  options.DisablePerSessionThreads();
  Ort::Session from_file(env, path, options);
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  Ort::Session session(env, bytes.data(), bytes.size(), first);

  Ort::AllocatorWithDefaultOptions allocator;
  allocator.GetInfo();
  auto kept = allocator.GetAllocation(16);
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < session.GetInputCount(); i++) {
    inputs.push_back(session.GetInputNameAllocated(i, allocator).get());
    ask(session.GetInputTypeInfo(i).GetConst());
  }
  for (size_t i = 0; i < session.GetOutputCount(); i++) {
    outputs.push_back(session.GetOutputNameAllocated(i, allocator).get());
    ask(session.GetOutputTypeInfo(i).GetConst());
  }
  std::printf("%zu overridable\n", session.GetOverridableInitializerCount());
  Ort::ModelMetadata about = session.GetModelMetadata();
  about.GetProducerNameAllocated(allocator);
  about.GetGraphNameAllocated(allocator);
  about.GetGraphDescriptionAllocated(allocator);
  about.GetDomainAllocated(allocator);
  about.GetDescriptionAllocated(allocator);
  about.GetCustomMetadataMapKeysAllocated(allocator);
  about.LookupCustomMetadataMapAllocated("author", allocator);
  std::printf("version %lld\n", static_cast<long long>(about.GetVersion()));

  auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::printf("%s %d %d %d\n", memory.GetAllocatorName().c_str(), memory.GetAllocatorType(), memory.GetMemoryType(),
              memory == Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault));
  std::vector<float> sound(576, 0.25f);
  const int64_t shape[] = {1, 576}, state_shape[] = {2, 1, 128};
  int64_t rate = 16000;
  std::vector<Ort::Value> given;
  given.push_back(Ort::Value::CreateTensor<float>(memory, sound.data(), sound.size(), shape, 2));
  given.push_back(Ort::Value::CreateTensor<float>(allocator, state_shape, 3));
  std::fill_n(given[1].GetTensorMutableData<float>(), 256, 0.f);
  given.push_back(Ort::Value::CreateTensor<int64_t>(memory, &rate, 1, nullptr, 0));
  given[0].At<float>({0, 1}) = 0.5f;
  given[0].GetTensorMemoryInfo();
  std::printf("%d %d %zu\n", given[0].IsTensor(), given[0].HasValue(),
              given[0].GetTypeInfo().GetTensorTypeAndShapeInfo().GetElementCount());

  Ort::Value words_in = Ort::Value::CreateTensor(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* text[] = {"one"};
  words_in.FillStringTensor(text, 1);
  words_in.FillStringTensorElement("three", 0);
  std::printf("%s %zu\n", words_in.GetStringTensorElement(0).c_str(), words_in.GetStringTensorDataLength());

  Ort::RunOptions run;
  run.SetRunTag("tag").SetRunLogSeverityLevel(4).SetRunLogVerbosityLevel(0).SetTerminate().UnsetTerminate();
  run.AddConfigEntry("disable_synchronize_execution_providers", "1");
  const char* in[] = {"input", "state", "sr"};
  const char* out[] = {"output", "stateN"};
  auto results = session.Run(run, in, given.data(), 3, out, 2);
  auto again = from_file.Run(Ort::RunOptions{nullptr}, in, given.data(), 3, out, 2);
  std::printf("%d\n", results[0].GetTensorData<float>()[0] == again[0].GetTensorData<float>()[0]);
  try {
    const char* wrong[] = {"volume", "state", "sr"};
    session.Run(run, wrong, given.data(), 3, out, 2);
  } catch (const Ort::Exception& error) {
    std::printf("%d %s\n", error.GetOrtErrorCode(), error.what());
  }
}
