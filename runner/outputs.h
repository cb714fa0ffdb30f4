/* The outputs of one run: taken out of the runtime, saved and described. */
#ifndef ORTRIM_OUTPUTS_H
#define ORTRIM_OUTPUTS_H

#include "runtime.h"

struct outputs {
  OrtValue **values;
  unsigned char *copy; /* where outputs are copied to, as an application would */
  size_t capacity;
};

void outputs_prepare(struct outputs *outputs, const struct runtime *runtime);
/* Copies each tensor out of the runtime. */
void outputs_copy(struct outputs *outputs, const struct runtime *runtime);
/* Writes FOLDER/output_NNN.npy (.strings; output_NNN_NNN for an element of a sequence,
 * output_NNN_keys and output_NNN_values for a map) and adds `outputs` to the
 * report. Without a folder the outputs are only described. */
void outputs_save(struct outputs *outputs, const struct runtime *runtime, const char *folder);
/* Makes a folder unless it is there, or fails with EXIT_OUTPUT. */
void make_folder(const char *path);
void outputs_release(struct outputs *outputs, const struct runtime *runtime);

#endif
