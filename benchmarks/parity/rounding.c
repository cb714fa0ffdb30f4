/* Opened before a library, this has all that follows round as MODE says: FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD. */
#include <fenv.h>

__attribute__((constructor)) static void round_otherwise(void) { fesetround(MODE); }
