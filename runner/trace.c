#define _POSIX_C_SOURCE 200809L
#include "trace.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "outputs.h"

enum { PATH_SIZE = 4096, MOST_BYTES = 64 << 20 };

static void place(char path[PATH_SIZE], const struct options *options, const char *name) {
  int length = snprintf(path, PATH_SIZE, "%s/%s", options->outputs, name);
  if (length < 0 || length >= PATH_SIZE) fail(EXIT_OUTPUT, "%s: the path is too long", options->outputs);
}

void trace_begin(const struct runtime *runtime, OrtSessionOptions *settings, const struct options *options) {
  char path[PATH_SIZE];
  if (!options->trace) return;
  enter_stage("trace", options->outputs);
  make_folder(options->outputs);
  /* The runtime says nothing of a file that it cannot open, and writes into it only at the end. */
  place(path, options, ".");
  if (access(path, W_OK) != 0) fail(EXIT_OUTPUT, "%s: %s", options->outputs, strerror(errno));
  place(path, options, "trace");
  require(runtime, EXIT_OUTPUT, runtime->api->EnableProfiling(settings, path));
}

/* Has the runtime write what it kept, and returns the file; beyond the limit the system refuses to write on. */
static const char *write_events(const struct runtime *runtime) {
  struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY};
  char *written = NULL;
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit bounded = {MOST_BYTES < before.rlim_cur ? MOST_BYTES : before.rlim_cur, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &bounded);
  require(runtime, EXIT_OUTPUT, runtime->api->SessionEndProfiling(runtime->session, runtime->allocator, &written));
  setrlimit(RLIMIT_FSIZE, &before);
  return written;
}

/* Whether a file has its end, which the runtime writes last; `*size` says how far it came. */
static bool is_whole(const char *path, long *size) {
  char end[2] = "";
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  bool whole = fseek(file, -2, SEEK_END) == 0 && fread(end, 1, 2, file) == 2 && !memcmp(end, "]\n", 2);
  fseek(file, 0, SEEK_END);
  *size = ftell(file);
  fclose(file);
  return whole;
}

void trace_end(const struct runtime *runtime, const struct options *options) {
  char path[PATH_SIZE];
  long size = 0;
  if (!options->trace) return;
  enter_stage("trace", options->outputs);
  place(path, options, "trace.json");
  const char *written = write_events(runtime);
  if (rename(written, path) != 0) fail(EXIT_OUTPUT, "%s: %s", written, strerror(errno));
  if (is_whole(path, &size)) return;
  unlink(path);
  if (size >= MOST_BYTES) fail(EXIT_OUTPUT, "the trace would be longer than 64 MiB: make fewer runs, or of fewer cases");
  fail(EXIT_OUTPUT, "%s: only %ld bytes could be written", path, size);
}
