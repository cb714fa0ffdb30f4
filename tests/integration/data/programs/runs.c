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
  printf("%s, %zu inputs\n", OrtGetApiBase()->GetVersionString(), inputs);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseEnv(env);
  return 0;
}
