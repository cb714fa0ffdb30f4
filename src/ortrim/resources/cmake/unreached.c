/* Where the symbols of kernels lead that nothing in the library reaches: to bytes without code, an address for each; and
 * where those of functions lead that MLAS calls for such a kernel when it fills its table. The linker's script says so.
 *
 * Such symbols are defined here, too, so that no object is taken out of an archive for their sake: on ARM64 some make
 * tables of kernels as the library is loaded, and would keep those kernels. An object that is there in any case has its
 * own definitions. */
#define ORTRIM_LEFT_OUT(number, name)                                                                              \
  __attribute__((weak, visibility("hidden"))) extern const char ortrim_left_out_##number __asm__(name);            \
  const char ortrim_left_out_##number = 0;
#include "unreached.h"

__attribute__((visibility("hidden"))) extern const char ortrim_unreached[256];
const char ortrim_unreached[256] = {0};
__attribute__((visibility("hidden"))) const void *ortrim_unreached_call(void);
const void *ortrim_unreached_call(void) { return ortrim_unreached; }
