/* The three ways in which a model's bytes reach the runtime. */
#ifndef ORTRIM_MODEL_H
#define ORTRIM_MODEL_H

#include "options.h"
#include "runtime.h"

/* Creates the session by --load, or fails with EXIT_MODEL: `file` has the runtime read the file, `bytes` reads it here,
 * `map` maps it. Read or mapped bytes stay where they are until the process ends, since the runtime may be told to use
 * them in place (session.use_ort_model_bytes_directly, session.use_ort_model_bytes_for_initializers). */
void model_load(struct runtime *runtime, const OrtSessionOptions *settings, const struct options *options);

#endif
