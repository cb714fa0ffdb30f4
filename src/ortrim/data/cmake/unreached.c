/* Where the symbols of kernels lead that nothing in the library reaches: to bytes without code, an address for each; and
 * where those of functions lead that MLAS calls for such a kernel when it fills its table. */
__attribute__((visibility("hidden"))) extern const char ortrim_unreached[256];
const char ortrim_unreached[256] = {0};
__attribute__((visibility("hidden"))) const void *ortrim_unreached_call(void);
const void *ortrim_unreached_call(void) { return ortrim_unreached; }
