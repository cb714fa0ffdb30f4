#define _POSIX_C_SOURCE 200809L
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct bytes {
  const void *start;
  size_t size;
};

static int open_model(const char *path, size_t *size) {
  struct stat status;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 || fstat(descriptor, &status) != 0) fail(EXIT_MODEL, "%s: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode) || status.st_size <= 0) fail(EXIT_MODEL, "%s: not a file, or an empty one", path);
  *size = (size_t)status.st_size;
  return descriptor;
}

static struct bytes map_model(const char *path) {
  size_t size;
  int descriptor = open_model(path, &size);
  void *start = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) fail(EXIT_MODEL, "%s: %s", path, strerror(errno));
  close(descriptor);
  return (struct bytes){start, size};
}

static struct bytes read_model(const char *path) {
  size_t size, done = 0;
  int descriptor = open_model(path, &size);
  char *start = allocate(size);
  while (done < size) {
    ssize_t taken = read(descriptor, start + done, size - done);
    if (taken < 0 && errno == EINTR) continue;
    if (taken <= 0) fail(EXIT_MODEL, "%s: %s", path, taken < 0 ? strerror(errno) : "it became shorter");
    done += (size_t)taken;
  }
  close(descriptor);
  return (struct bytes){start, size};
}

void model_load(struct runtime *runtime, const OrtSessionOptions *settings, const struct options *options) {
  const OrtApi *api = runtime->api;
  struct bytes model;
  if (!strcmp(options->load, "file")) {
    require(runtime, EXIT_MODEL, api->CreateSession(runtime->environment, options->model, settings, &runtime->session));
    return;
  }
  model = !strcmp(options->load, "map") ? map_model(options->model) : read_model(options->model);
  require(runtime, EXIT_MODEL, api->CreateSessionFromArray(runtime->environment, model.start, model.size, settings,
                                                           &runtime->session));
}
