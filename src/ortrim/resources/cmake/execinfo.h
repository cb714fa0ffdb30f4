// Stands in for glibc's header where the C library has none (musl). ONNX Runtime includes it in every build and calls
// it only in debug builds, which ortrim does not make; a stack trace is then empty.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif
static inline int backtrace(void **buffer, int size) {
  (void)buffer;
  (void)size;
  return 0;
}
static inline char **backtrace_symbols(void *const *buffer, int size) {
  (void)buffer;
  (void)size;
  return 0;
}
#ifdef __cplusplus
}
#endif
