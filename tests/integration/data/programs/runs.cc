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
