
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
