/* One attempt to load a model and run it once, in a process that may be lost.
 *
 * usage: attempt LIBRARY MODEL [WORD...]
 *   input NAME TYPE:DIMS[=VALUE]   gives an input, for example: input sr int64:=16000, input state float:2x1x128
 *   output NAME                    asks for an output
 *   load-memory BYTES              limits what loading may add to the address space
 *   run-memory BYTES               limits what running may add to the address space
 *
 * Prints "loaded", then "ran", on standard output as it gets there. Exits with 0, with 3 after the runtime returned
 * a status, whose message is then on standard output, or with 2 when the attempt itself cannot be made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { LIMIT = 8, IMPOSSIBLE = 2, STATUS = 3 };

static const OrtApi *api;

struct attempt {
  const char *input_names[LIMIT], *output_names[LIMIT];
  OrtValue *inputs[LIMIT], *outputs[LIMIT];
  size_t input_count, output_count;
  long load_memory, run_memory;
};

static void stop(const char *message) {
  fprintf(stderr, "attempt: %s\n", message);
  exit(IMPOSSIBLE);
}

static void check(OrtStatus *status) {
  if (!status) return;
  printf("%s\n", api->GetErrorMessage(status));
  fflush(NULL);
  _Exit(STATUS);
}

/* From here on the address space may grow by so many bytes only. */
static void limit_growth(long bytes) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1) stop("no /proc/self/statm");
  fclose(file);
  rlim_t most = (rlim_t)(pages * 4096 + bytes);
  struct rlimit limit = {most, most};
  if (bytes && setrlimit(RLIMIT_AS, &limit) != 0) stop("setrlimit failed");
}

/* Zeros, or one value, that take no memory before somebody reads them. */
static void *zeros(size_t bytes, long value) {
  void *data = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) stop("no address space for an input");
  if (value) memcpy(data, &value, sizeof value);
  return data;
}

/* Makes the tensor that a text such as float:2x1x128 describes. */
static OrtValue *tensor(char *text) {
  int64_t shape[LIMIT], value = 0;
  size_t rank = 0, bytes = 8;
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  if (!strncmp(text, "float:", 6)) type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, bytes = 4;
  else if (!strncmp(text, "double:", 7)) type = ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
  else if (strncmp(text, "int64:", 6) != 0) stop("unknown type");
  char *equals = strchr(text, '=');
  if (equals) value = atol(equals + 1), *equals = 0;
  for (char *word = strtok(strchr(text, ':') + 1, "x"); word && rank < LIMIT; word = strtok(NULL, "x")) {
    bytes *= (size_t)(shape[rank] = atol(word));
    rank++;
  }
  OrtMemoryInfo *memory = NULL;
  OrtValue *made = NULL;
  check(api->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
  check(api->CreateTensorWithDataAsOrtValue(memory, zeros(bytes, value), bytes, shape, rank, type, &made));
  return made;
}

static struct attempt read_words(char **word) {
  struct attempt attempt = {0};
  for (; *word; word++) {
    if (attempt.input_count == LIMIT || attempt.output_count == LIMIT || !word[1]) stop("wrong words");
    if (!strcmp(*word, "input") && word[2]) {
      attempt.input_names[attempt.input_count] = *++word;
      attempt.inputs[attempt.input_count++] = tensor(*++word);
    } else if (!strcmp(*word, "output")) attempt.output_names[attempt.output_count++] = *++word;
    else if (!strcmp(*word, "load-memory")) attempt.load_memory = atol(*++word);
    else if (!strcmp(*word, "run-memory")) attempt.run_memory = atol(*++word);
    else stop("unknown word");
  }
  return attempt;
}

static void open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;
  const OrtApiBase *(*get_base)(void) = NULL;
  if (!symbol) stop(dlerror());
  memcpy(&get_base, &symbol, sizeof get_base);
  api = get_base()->GetApi(ORT_API_VERSION);
}

static OrtSession *load(const char *model, long memory) {
  OrtEnv *environment = NULL;
  OrtSessionOptions *options = NULL;
  OrtSession *session = NULL;
  check(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "attempt", &environment));
  check(api->CreateSessionOptions(&options));
  check(api->SetIntraOpNumThreads(options, 1));
  limit_growth(memory);
  check(api->CreateSession(environment, model, options, &session));
  puts("loaded");
  fflush(stdout);
  return session;
}

int main(int count, char **words) {
  if (count < 3) stop("usage: attempt LIBRARY MODEL [WORD...]");
  open_library(words[1]);
  struct attempt attempt = read_words(words + 3);
  OrtSession *session = load(words[2], attempt.load_memory);
  if (!attempt.output_count) return 0;
  limit_growth(attempt.run_memory);
  check(api->Run(session, NULL, attempt.input_names, (const OrtValue *const *)attempt.inputs, attempt.input_count,
                 attempt.output_names, attempt.output_count, attempt.outputs));
  puts("ran");
  fflush(NULL);
  _Exit(0);
}
