#include "runtime.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#include "measure.h"
#include "model.h"
#include "trace.h"

void require(const struct runtime *runtime, enum exit_code code, OrtStatus *status) {
  if (status) fail(code, "%s", runtime->api->GetErrorMessage(status));
}

#ifdef ORTRIM_LINKED
/* Whether a library is the archive that this program was linked with, which holds its code already. */
static bool is_linked(const char *library) {
  size_t length = strlen(library);
  return length > 2 && !strcmp(library + length - 2, ".a");
}
#endif

static void *open_library(const char *library) {
  /* Without a slash, dlopen would look in the system's folders instead of here. */
  if (!strchr(library, '/')) fail(EXIT_LIBRARY, "%s: give the library's path, at least './%s'", library, library);
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!opened) fail(EXIT_LIBRARY, "%s", dlerror());
  return opened;
}

static const OrtApiBase *find_base(const char *library) {
#ifdef ORTRIM_LINKED
  if (is_linked(library)) return OrtGetApiBase();
#endif
  void *opened = open_library(library);
  const OrtApiBase *(*get_base)(void) = NULL;
  void *symbol = dlsym(opened, "OrtGetApiBase");
  if (!symbol) fail(EXIT_LIBRARY, "%s has no OrtGetApiBase", library);
  memcpy(&get_base, &symbol, sizeof get_base); /* ISO C has no cast from data to function */
  return get_base();
}

void runtime_open(struct runtime *runtime, const struct options *options) {
  enter_stage("open", options->library);
  double start = now_ms();
  for (size_t i = 0; i < options->companion_count; i++) open_library(options->companions[i]);
  const OrtApiBase *base = find_base(options->library);
  runtime->version = base->GetVersionString();
  runtime->api = base->GetApi(API_VERSION);
  if (!runtime->api) fail(EXIT_LIBRARY, "version %s has no API version %d", runtime->version, API_VERSION);
  const OrtApi *api = runtime->api;
  require(runtime, EXIT_LIBRARY, api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "ortrim-runner", &runtime->environment));
  runtime->open_ms = now_ms() - start;
}

static GraphOptimizationLevel level_of(const char *name) {
  if (!strcmp(name, "none")) return ORT_DISABLE_ALL;
  if (!strcmp(name, "basic")) return ORT_ENABLE_BASIC;
  if (!strcmp(name, "extended")) return ORT_ENABLE_EXTENDED;
  if (!strcmp(name, "all")) return ORT_ENABLE_ALL;
  fail(EXIT_USAGE, "--optimization-level is none, basic, extended or all, not '%s'", name);
}

static void configure(const struct runtime *runtime, OrtSessionOptions *settings, const struct options *options) {
  const OrtApi *api = runtime->api;
  const char *spinning = options->allow_spinning ? "1" : "0";
  require(runtime, EXIT_USAGE, api->SetIntraOpNumThreads(settings, (int)options->threads));
  require(runtime, EXIT_USAGE, api->SetInterOpNumThreads(settings, (int)options->inter_op_threads));
  require(runtime, EXIT_USAGE,
          api->SetSessionExecutionMode(settings, options->inter_op_threads > 1 ? ORT_PARALLEL : ORT_SEQUENTIAL));
  require(runtime, EXIT_USAGE, api->AddSessionConfigEntry(settings, "session.intra_op.allow_spinning", spinning));
  require(runtime, EXIT_USAGE, api->AddSessionConfigEntry(settings, "session.inter_op.allow_spinning", spinning));
  if (!options->arena) require(runtime, EXIT_USAGE, api->DisableCpuMemArena(settings));
  if (!options->memory_pattern) require(runtime, EXIT_USAGE, api->DisableMemPattern(settings));
  if (options->optimization_level)
    require(runtime, EXIT_USAGE, api->SetSessionGraphOptimizationLevel(settings, level_of(options->optimization_level)));
  for (size_t i = 0; i < options->provider_count; i++)
    require(runtime, EXIT_USAGE,
            api->SessionOptionsAppendExecutionProvider(settings, options->providers[i], NULL, NULL, 0));
  for (size_t i = 0; i < options->configuration_count; i++) {
    const struct setting *entry = &options->configuration[i];
    require(runtime, EXIT_USAGE, api->AddSessionConfigEntry(settings, entry->key, entry->value));
  }
}

typedef OrtStatus *(ORT_API_CALL *name_reader)(const OrtSession *, size_t, OrtAllocator *, char **);

static char **read_names(const struct runtime *runtime, name_reader reader, size_t count) {
  char **names = allocate(count * sizeof *names);
  for (size_t i = 0; i < count; i++)
    require(runtime, EXIT_MODEL, reader(runtime->session, i, runtime->allocator, &names[i]));
  return names;
}

void runtime_load(struct runtime *runtime, const struct options *options) {
  const OrtApi *api = runtime->api;
  OrtSessionOptions *settings = NULL;
  enter_stage("settings", "of the session");
  require(runtime, EXIT_LIBRARY, api->CreateSessionOptions(&settings));
  configure(runtime, settings, options);
  trace_begin(runtime, settings, options);
  enter_stage("load", options->model);
  double start = now_ms(), waited = waited_ms();
  model_load(runtime, settings, options);
  runtime->load_waited_ms = waited < 0 ? UNKNOWN_MS : waited_ms() - waited;
  runtime->load_ms = now_ms() - start;
  api->ReleaseSessionOptions(settings);
  require(runtime, EXIT_MODEL, api->GetAllocatorWithDefaultOptions(&runtime->allocator));
  require(runtime, EXIT_MODEL, api->SessionGetInputCount(runtime->session, &runtime->input_count));
  require(runtime, EXIT_MODEL, api->SessionGetOutputCount(runtime->session, &runtime->output_count));
  runtime->input_names = read_names(runtime, api->SessionGetInputName, runtime->input_count);
  runtime->output_names = read_names(runtime, api->SessionGetOutputName, runtime->output_count);
}
