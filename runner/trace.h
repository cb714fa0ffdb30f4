/* ONNX Runtime's own profile of a session, left as trace.json among the outputs. */
#ifndef ORTRIM_TRACE_H
#define ORTRIM_TRACE_H

#include "options.h"
#include "runtime.h"

/* Has a session that is yet to be created keep a profile, or fails with EXIT_OUTPUT where it could not be written. */
void trace_begin(const struct runtime *runtime, OrtSessionOptions *settings, const struct options *options);
/* Writes OUTPUTS/trace.json, at most 64 MiB, or fails with EXIT_OUTPUT and leaves none. */
void trace_end(const struct runtime *runtime, const struct options *options);

#endif
