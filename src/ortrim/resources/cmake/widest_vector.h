// What vectors a processor of x86-64 has, for kernels that are compiled for several.
#pragma once

#if defined(__x86_64__)

#include <cpuid.h>

namespace ortrim {

// Returns how many floats the widest vectors with FMA have that the processor and the system know: 0, 8 or 16.
inline int WidestVector() {
  constexpr unsigned kFirst = bit_FMA | bit_OSXSAVE | bit_AVX, kState = 0x6, kStateOfAvx512 = 0xE6;
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kFirst) != kFirst) return 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & kState) != kState || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & bit_AVX2) == 0) return 0;
  return (low & kStateOfAvx512) == kStateOfAvx512 && (b & bit_AVX512F) != 0 ? 16 : 8;
}

}  // namespace ortrim

#endif
