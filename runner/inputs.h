/* The inputs of one case: read from its folder once, handed to the runtime anew for each run. */
#ifndef ORTRIM_INPUTS_H
#define ORTRIM_INPUTS_H

#include "runtime.h"
#include "tensor.h"

struct input {
  struct tensor tensor;
  void *staging;   /* what the runtime sees; a fresh copy for each run, as an application would give */
  OrtValue *value;
};

struct inputs {
  size_t count; /* inputs that are given */
  const char **names;
  struct input *entries;
  const OrtValue **values;
  OrtMemoryInfo *memory;
};

/* Reads input_NNN.npy or input_NNN.strings for each input of the model, or fails with EXIT_INPUT.
 * An input of an optional type without a file is not given. */
void inputs_read(struct inputs *inputs, const struct runtime *runtime, const char *folder);
/* Makes the values for one run. */
void inputs_make(struct inputs *inputs, const struct runtime *runtime);
void inputs_release(struct inputs *inputs, const struct runtime *runtime);
void inputs_free(struct inputs *inputs, const struct runtime *runtime);

#endif
