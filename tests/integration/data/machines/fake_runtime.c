/* A stand-in for ONNX Runtime that does what its "model" says: the first word of the file, then a number.
 *
 * It has one input and one output of float32, [4]; the output is twice the input. What is not of the C API that the
 * runner calls is not here.
 */
#define _GNU_SOURCE
#include <onnxruntime_c_api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 4 };
static struct {
  char name[32];
  long number;
} behaviour;
static float *input_data;
static float *output_data;
static int64_t output_count = COUNT;
static char some;
static void *volatile nowhere;

static OrtStatus *ok(void) { return NULL; }
static OrtStatus *refused(void) { return (OrtStatus *)&behaviour; }
static const char *ORT_API_CALL message(const OrtStatus *status) { return status ? "the fake refuses" : ""; }

static void take_memory(long megabytes) {
  size_t size = (size_t)megabytes << 20;
  volatile char *memory = malloc(size); /* volatile: nothing reads it, and it must be written all the same */
  if (!memory) abort();
  for (size_t i = 0; i < size; i += 4096) memory[i] = 1;
}

/* An instruction that the oldest processors of the architecture do not have. */
static void newer_instruction(void) {
#if defined __aarch64__
  long memory = 0;
  __asm__ volatile(".arch_extension lse\n ldadd %0, x9, [%1]" ::"r"(1L), "r"(&memory) : "x9", "memory");
#else
  raise(SIGILL);
#endif
}

/* A real bus error: memory of a file that has no such byte. */
static void read_beyond_a_file(void) {
  volatile char *memory = mmap(NULL, 1, PROT_READ, MAP_SHARED, fileno(tmpfile()), 0);
  (void)*memory;
}

static void wait_forever(void) {
  const struct timespec day = {.tv_sec = 86400};
  for (;;) nanosleep(&day, NULL);
}

static void print_forever(void) {
  for (;;) puts("a line that a library prints again and again, for whatever reason it may have to do so");
}

/* Half a report where the runner prints the whole one: it keeps its own standard output as the next descriptor. */
static void end_half_way(void) {
  dprintf(3, "{\"schema\":\"ortrim-runner/1\",\"status\":\"o");
  _exit(0);
}

/* With a child in a group of its own, which nobody reaches by the runner's. */
static void hang_with_child(void) {
  if (fork() == 0) setsid();
  wait_forever();
}

/* With no function that takes any number of arguments: an Apple processor has these elsewhere. */
static int read_behaviour(const char *path) {
  char text[64] = "";
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  fread(text, 1, sizeof text - 1, file);
  fclose(file);
  size_t length = 0;
  while (text[length] && text[length] != ' ') length++;
  if (!length || length >= sizeof behaviour.name) return 0;
  memcpy(behaviour.name, text, length);
  behaviour.number = strtol(text + length, NULL, 10);
  return 1;
}

static OrtStatus *ORT_API_CALL create_session(const OrtEnv *env, const ORTCHAR_T *path, const OrtSessionOptions *options,
                                              OrtSession **out) {
  (void)env, (void)options;
  if (!read_behaviour(path)) return refused();
  if (!strcmp(behaviour.name, "refuse")) return refused();
  if (!strcmp(behaviour.name, "allocate")) take_memory(behaviour.number);
  if (!strcmp(behaviour.name, "large")) output_count = behaviour.number << 18;
  *out = (OrtSession *)&some;
  return ok();
}

static OrtStatus *ORT_API_CALL run(OrtSession *session, const OrtRunOptions *options, const char *const *inputs,
                                   const OrtValue *const *values, size_t count, const char *const *outputs,
                                   size_t output_names, OrtValue **out) {
  (void)session, (void)options, (void)inputs, (void)values, (void)count, (void)outputs, (void)output_names;
  if (!strcmp(behaviour.name, "hang")) wait_forever();
  if (!strcmp(behaviour.name, "abort")) abort();
  if (!strcmp(behaviour.name, "crash")) *(volatile int *)nowhere = 1;
  if (!strcmp(behaviour.name, "illegal")) newer_instruction();
  if (!strcmp(behaviour.name, "bus")) read_beyond_a_file();
  if (!strcmp(behaviour.name, "kill")) raise(SIGKILL);
  if (!strcmp(behaviour.name, "endless")) print_forever();
  if (!strcmp(behaviour.name, "half")) end_half_way();
  if (!strcmp(behaviour.name, "family")) hang_with_child();
  if (!strcmp(behaviour.name, "print")) {
    puts("@@EXIT 0\n@@FILES\ngarbage from a library");
    fflush(stdout);
  }
  if (!strcmp(behaviour.name, "quit")) _exit((int)behaviour.number);
  if (!output_data) output_data = calloc((size_t)output_count, sizeof *output_data);
  for (int i = 0; i < COUNT; i++) output_data[i] = 2 * input_data[i];
  out[0] = (OrtValue *)&output_data;
  return ok();
}

static OrtStatus *ORT_API_CALL create_value(const OrtMemoryInfo *info, void *data, size_t size, const int64_t *shape,
                                            size_t rank, ONNXTensorElementDataType type, OrtValue **out) {
  (void)info, (void)size, (void)shape, (void)rank, (void)type;
  input_data = data;
  *out = (OrtValue *)&input_data;
  return ok();
}

static char *name_of(const char *text) { return strdup(text); }
#define MAKE(function, ...) \
  static OrtStatus *ORT_API_CALL function(__VA_ARGS__)

MAKE(create_env, OrtLoggingLevel level, const char *id, OrtEnv **out) { (void)level, (void)id; *out = (OrtEnv *)&some; return ok(); }
MAKE(create_options, OrtSessionOptions **out) { *out = (OrtSessionOptions *)&some; return ok(); }
MAKE(set_number, OrtSessionOptions *options, int number) { (void)options, (void)number; return ok(); }
MAKE(set_mode, OrtSessionOptions *options, ExecutionMode mode) { (void)options, (void)mode; return ok(); }
MAKE(add_entry, OrtSessionOptions *options, const char *key, const char *value) { (void)options, (void)key, (void)value; return ok(); }
MAKE(get_allocator, OrtAllocator **out) { *out = (OrtAllocator *)&some; return ok(); }
MAKE(get_count, const OrtSession *session, size_t *out) { (void)session; *out = 1; return ok(); }
MAKE(input_name, const OrtSession *s, size_t i, OrtAllocator *a, char **out) { (void)s, (void)i, (void)a; *out = name_of("x"); return ok(); }
MAKE(output_name, const OrtSession *s, size_t i, OrtAllocator *a, char **out) { (void)s, (void)i, (void)a; *out = name_of("y"); return ok(); }
MAKE(type_info, const OrtSession *session, size_t index, OrtTypeInfo **out) { (void)session, (void)index; *out = (OrtTypeInfo *)&some; return ok(); }
MAKE(tensor_info, const OrtTypeInfo *info, const OrtTensorTypeAndShapeInfo **out) { *out = (const OrtTensorTypeAndShapeInfo *)info; return ok(); }
MAKE(element_type, const OrtTensorTypeAndShapeInfo *info, enum ONNXTensorElementDataType *out) { (void)info; *out = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; return ok(); }
MAKE(memory_info, enum OrtAllocatorType a, enum OrtMemType m, OrtMemoryInfo **out) { (void)a, (void)m; *out = (OrtMemoryInfo *)&some; return ok(); }
MAKE(has_value, const OrtValue *value, int *out) { *out = value != NULL; return ok(); }
MAKE(value_type, const OrtValue *value, enum ONNXType *out) { (void)value; *out = ONNX_TYPE_TENSOR; return ok(); }
MAKE(type_and_shape, const OrtValue *value, OrtTensorTypeAndShapeInfo **out) { (void)value; *out = (OrtTensorTypeAndShapeInfo *)&some; return ok(); }
MAKE(dimension_count, const OrtTensorTypeAndShapeInfo *info, size_t *out) { (void)info; *out = 1; return ok(); }
MAKE(dimensions, const OrtTensorTypeAndShapeInfo *info, int64_t *out, size_t count) { (void)info, (void)count; out[0] = output_count; return ok(); }
MAKE(element_count, const OrtTensorTypeAndShapeInfo *info, size_t *out) { (void)info; *out = (size_t)output_count; return ok(); }
MAKE(mutable_data, OrtValue *value, void **out) { (void)value; *out = output_data; return ok(); }

static void ORT_API_CALL release_info(OrtTypeInfo *info) { (void)info; }
static void ORT_API_CALL release_shape(OrtTensorTypeAndShapeInfo *info) { (void)info; }
static void ORT_API_CALL release_value(OrtValue *value) { (void)value; }
static void ORT_API_CALL release_memory(OrtMemoryInfo *info) { (void)info; }
static void ORT_API_CALL release_options(OrtSessionOptions *options) { (void)options; }

static const OrtApi api = {
    .GetErrorMessage = message,
    .CreateEnv = create_env,
    .CreateSessionOptions = create_options,
    .SetIntraOpNumThreads = set_number,
    .SetInterOpNumThreads = set_number,
    .SetSessionExecutionMode = set_mode,
    .AddSessionConfigEntry = add_entry,
    .CreateSession = create_session,
    .ReleaseSessionOptions = release_options,
    .GetAllocatorWithDefaultOptions = get_allocator,
    .SessionGetInputCount = get_count,
    .SessionGetOutputCount = get_count,
    .SessionGetInputName = input_name,
    .SessionGetOutputName = output_name,
    .SessionGetInputTypeInfo = type_info,
    .CastTypeInfoToTensorInfo = tensor_info,
    .GetTensorElementType = element_type,
    .ReleaseTypeInfo = release_info,
    .CreateCpuMemoryInfo = memory_info,
    .ReleaseMemoryInfo = release_memory,
    .CreateTensorWithDataAsOrtValue = create_value,
    .Run = run,
    .HasValue = has_value,
    .GetValueType = value_type,
    .GetTensorTypeAndShape = type_and_shape,
    .GetDimensionsCount = dimension_count,
    .GetDimensions = dimensions,
    .GetTensorShapeElementCount = element_count,
    .ReleaseTensorTypeAndShapeInfo = release_shape,
    .GetTensorMutableData = mutable_data,
    .ReleaseValue = release_value,
};

static const OrtApi *ORT_API_CALL get_api(uint32_t version) {
  (void)version;
  return &api;
}
static const char *ORT_API_CALL get_version(void) { return "0.0.1"; }
static const OrtApiBase base = {get_api, get_version};
const OrtApiBase *ORT_API_CALL OrtGetApiBase(void) { return &base; }
