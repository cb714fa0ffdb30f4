/* A library that is a given bit worse than another, to see whether verdicts notice.
 *
 * It opens the library REAL and hands on everything. Each inference is followed by work of its own, as much as WORK says
 * for the number of elements of the first input, each loading of a model by LOAD_WORK, and MEMORY bytes are kept. One
 * unit of work is a pass of multiplications and additions over 1 kB. Linux only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "onnxruntime_c_api.h"

static const struct { size_t elements; long units; } amounts[] = {WORK};
static const OrtApiBase *real_base;
static const OrtApi *real;
static OrtApi api;
static float numbers[256];

static void work(long units) {
  for (long unit = 0; unit < units; unit++) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) numbers[i] = numbers[i] * 0.999f + 1.0f;
    __asm__ volatile("" ::: "memory");
  }
}

static size_t elements_of(const OrtValue *value) {
  OrtTensorTypeAndShapeInfo *info;
  size_t elements = 0;
  if (real->GetTensorTypeAndShape(value, &info)) return 0;
  if (real->GetTensorShapeElementCount(info, &elements)) elements = 0;
  real->ReleaseTensorTypeAndShapeInfo(info);
  return elements;
}

static OrtStatus *ORT_API_CALL run(OrtSession *session, const OrtRunOptions *options, const char *const *input_names,
                                   const OrtValue *const *inputs, size_t input_count, const char *const *output_names,
                                   size_t output_count, OrtValue **outputs) {
  OrtStatus *status =
      real->Run(session, options, input_names, inputs, input_count, output_names, output_count, outputs);
  size_t elements = input_count ? elements_of(inputs[0]) : 0;
  for (size_t i = 0; i < sizeof amounts / sizeof *amounts; i++)
    if (amounts[i].elements == elements) work(amounts[i].units);
  return status;
}

static OrtStatus *ORT_API_CALL create(const OrtEnv *environment, const ORTCHAR_T *path,
                                      const OrtSessionOptions *options, OrtSession **session) {
  work(LOAD_WORK);
  return real->CreateSession(environment, path, options, session);
}

static OrtStatus *ORT_API_CALL create_from_array(const OrtEnv *environment, const void *model, size_t size,
                                                 const OrtSessionOptions *options, OrtSession **session) {
  work(LOAD_WORK);
  return real->CreateSessionFromArray(environment, model, size, options, session);
}

static const OrtApiBase *opened(void) {
  void *library = dlopen(REAL, RTLD_NOW | RTLD_LOCAL);
  const OrtApiBase *(*get)(void) = NULL;
  if (library) *(void **)&get = dlsym(library, "OrtGetApiBase");
  char *kept = malloc(MEMORY + 1);
  if (!get || !kept) abort();
  memset(kept, 1, MEMORY + 1);
  __asm__ volatile("" : : "r"(kept) : "memory"); /* or the compiler sees that nobody reads it */
  return get();
}

static const OrtApi *ORT_API_CALL get_api(uint32_t version) {
  real = real_base->GetApi(version);
  if (!real) return NULL;
  api = *real;
  api.Run = run;
  api.CreateSession = create;
  api.CreateSessionFromArray = create_from_array;
  return &api;
}

static const char *ORT_API_CALL get_version(void) { return real_base->GetVersionString(); }

const OrtApiBase *ORT_API_CALL OrtGetApiBase(void) {
  static const OrtApiBase base = {get_api, get_version};
  if (!real_base) real_base = opened();
  return &base;
}
