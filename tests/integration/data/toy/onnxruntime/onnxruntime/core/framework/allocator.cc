// What stands in front of this file: the header that the wrapper precompiles, and nothing else.
#if defined(ORTRIM_PRECOMPILED) != defined(PRECOMPILED_WITH_THIS)
#error "marked sources, and only they, are compiled with the header"
#endif
#include "core/framework/op_kernel.h"

int allocate(int value) { return log_value(value); }
