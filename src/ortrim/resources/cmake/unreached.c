/* Where the symbols of kernels lead that nothing in the library reaches: to bytes without code, an address for each; and
 * where those of functions lead that MLAS calls for such a kernel when it fills its table. The linker's script says so;
 * for Apple's systems, whose linkers have no scripts, the definitions here stand, because others are made weak.
 *
 * Such symbols are defined here, too, so that no object is taken out of an archive for their sake: on ARM64 some make
 * tables of kernels as the library is loaded, and would keep those kernels. An object that is there in any case has its
 * own definitions. */
__attribute__((visibility("hidden"))) extern const char ortrim_unreached[256];
__attribute__((visibility("hidden"))) const void *ortrim_unreached_call(void);

#ifdef __APPLE__
#define ORTRIM_NAMED(name) __asm__("_" name) __attribute__((visibility("hidden")))
#define ORTRIM_LEFT_OUT_CALL(number, name)                       \
  const void *ortrim_left_out_##number(void) ORTRIM_NAMED(name); \
  const void *ortrim_left_out_##number(void) { return ortrim_unreached; }
#else
#define ORTRIM_NAMED(name) __asm__(name) __attribute__((weak, visibility("hidden")))
#define ORTRIM_LEFT_OUT_CALL ORTRIM_LEFT_OUT
#endif
#define ORTRIM_LEFT_OUT(number, name)                            \
  extern const char ortrim_left_out_##number ORTRIM_NAMED(name); \
  const char ortrim_left_out_##number = 0;
#include "unreached.h"

const char ortrim_unreached[256] = {0};
const void *ortrim_unreached_call(void) { return ortrim_unreached; }
