// Winograd's products on x64: transforms by AVX2, products by the pointwise kernel in the processor's table, which is
// MLAS's own for AVX2 or that of avx512_convolutions.cc.
#include <cpuid.h>

#include <algorithm>
#include <atomic>

#include "mlasi.h"

#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)

#include "nchwc_rows.h"

namespace {

struct Blocked;

template <>
void RunFilters<Blocked>(Row row, size_t filters, size_t, size_t count, size_t) {
  GetMlasPlatform().ConvPointwiseFloatKernel(row.input, row.filter, row.output, row.stride, row.width, filters,
                                             row.dilation, row.filter_stride, row.output_stride, count, row.bias,
                                             row.flags);
}

}  // namespace

#include "winograd.h"

#pragma clang attribute pop

namespace ortrim {

bool HasTransforms() {
  constexpr unsigned kFmaAndSavedState = 0x18001000, kStateOfAvx = 0x6, kAvx2 = 0x20;
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kFmaAndSavedState) != kFmaAndSavedState) return false;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kStateOfAvx) == kStateOfAvx && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & kAvx2) != 0;
}

}  // namespace ortrim
