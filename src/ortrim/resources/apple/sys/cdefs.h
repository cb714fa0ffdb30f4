// zig's headers are a Mac's. On Macs with Intel's processors some functions have names with a suffix, for programs older
// than their present form; Apple's simulators, which came later, have them under their plain names.
#include_next <sys/cdefs.h>

#include <TargetConditionals.h>

#if TARGET_OS_SIMULATOR && defined(__x86_64__)
#undef __DARWIN_ONLY_64_BIT_INO_T
#define __DARWIN_ONLY_64_BIT_INO_T 1
#undef __DARWIN_SUF_64_BIT_INO_T
#define __DARWIN_SUF_64_BIT_INO_T
#undef __DARWIN_ONLY_VERS_1050
#define __DARWIN_ONLY_VERS_1050 1
#undef __DARWIN_SUF_1050
#define __DARWIN_SUF_1050
#endif
