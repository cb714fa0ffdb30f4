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
