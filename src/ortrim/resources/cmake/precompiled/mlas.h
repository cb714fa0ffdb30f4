// What each of MLAS's sources begins with.
#if __has_include("mlasi.h")
#include "mlasi.h"
#endif
