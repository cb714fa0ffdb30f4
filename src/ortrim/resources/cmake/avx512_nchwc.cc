// Puts MLAS's kernels for NCHWc layout with block size 16 into its table of the processor, as a full build's platform.cpp does
// where there is AVX-512; a minimal build's knows blocks of 8 alone. For models that are laid out so
// (layout = "nchwc16"), in a library whose least processor has AVX-512: the processor is not asked.
#include "mlasi.h"

#include "avx512_assignments.h"

namespace {

bool UseBlocksOf16(MLAS_PLATFORM& table) {
  UseAvx512Nchwc(table);
  return true;
}

[[maybe_unused]] const bool used = UseBlocksOf16(GetMlasPlatform());

}  // namespace
