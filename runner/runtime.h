/* ONNX Runtime, opened from a library by path.
 *
 * Compiled with ORTRIM_LINKED and linked with a static library, a path that ends in `.a` means the code inside. */
#ifndef ORTRIM_RUNTIME_H
#define ORTRIM_RUNTIME_H

#include <stddef.h>

#include "onnxruntime_c_api.h"
#include "options.h"
#include "report.h"

/* Of 1.16: old enough for every runtime that is built here, so that one runner serves them all. */
enum { API_VERSION = 16 };

struct runtime {
  const OrtApi *api;
  const char *version;
  OrtEnv *environment;
  OrtSession *session;
  OrtAllocator *allocator;
  size_t input_count, output_count;
  char **input_names, **output_names;
  double open_ms, load_ms;
  double load_waited_ms; /* of load_ms, or UNKNOWN_MS; see waited_ms */
};

/* Opens the library and makes its environment, or fails with EXIT_LIBRARY. */
void runtime_open(struct runtime *runtime, const struct options *options);
/* Creates the session, or fails with EXIT_MODEL. */
void runtime_load(struct runtime *runtime, const struct options *options);
/* Fails with `code` and the runtime's own words unless `status` is NULL. */
void require(const struct runtime *runtime, enum exit_code code, OrtStatus *status);

#endif
