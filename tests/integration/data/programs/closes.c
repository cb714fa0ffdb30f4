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
