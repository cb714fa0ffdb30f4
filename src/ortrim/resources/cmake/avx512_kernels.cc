// Puts kernels for AVX-512, and for AVX2 with VNNI on signed numbers, into MLAS's table of the processor, as a full
// build's platform.cpp does; a minimal build's goes no further than AVX2. Only kernels of integers, float32 GEMM,
// exponentials, maxima, Erf, GELU and SiLU; compiling/mechanisms.py reads which these are. Convolutions in blocks of
// channels stay as they are, and with them the blocks' size, which a model may be laid out for.
#include <cpuid.h>

#include "mlasi.h"

#include "avx512_assignments.h"

namespace {

constexpr uint64_t kStateOfAvx = 0x6, kStateOfAvx512 = 0xE0;
constexpr unsigned kFma = 0x1000, kSavedState = 0x18000000;
constexpr unsigned kAvx2 = 0x20, kAvx512F = 0x10000, kAvx512Core = 0xC0020000, kAvx512Vnni = 0x800;
constexpr unsigned kAvx2VnniInt8 = 0x10;

struct Features {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Features FeaturesOf(unsigned leaf, unsigned part) {
  Features found;
  __cpuid_count(leaf, part, found.a, found.b, found.c, found.d);
  return found;
}

uint64_t SavedState() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

bool UseAvx512Kernels(MLAS_PLATFORM& table) {
  const unsigned first = FeaturesOf(1, 0).c;
  if ((first & kSavedState) != kSavedState || (first & kFma) == 0) return false;
  const uint64_t saved = SavedState();
  const Features more = FeaturesOf(7, 0);
  if ((saved & kStateOfAvx) != kStateOfAvx || (more.b & kAvx2) == 0) return false;
  if ((saved & kStateOfAvx512) == kStateOfAvx512 && (more.b & kAvx512F) != 0) {
    UseAvx512F(table);
    if ((more.b & kAvx512Core) == kAvx512Core) {
      UseAvx512Core(table);
      if ((more.c & kAvx512Vnni) != 0) UseAvx512Vnni(table);
    }
  }
  if ((FeaturesOf(7, 1).d & kAvx2VnniInt8) != 0) UseAvx2VnniInt8(table);
  return true;
}

[[maybe_unused]] const bool used = UseAvx512Kernels(GetMlasPlatform());

}  // namespace
