// Puts MLAS's kernels for NCHWc layout with block size 16 into its table of the processor, as a full build's platform.cpp does
// where there is AVX-512; a minimal build's knows blocks of 8 alone. For models that are laid out so
// (layout = "nchwc16"), in a library whose least processor has AVX-512: the processor is not asked.
#include "mlasi.h"

namespace {

bool UseAvx512Nchwc(MLAS_PLATFORM& table) {
  table.ConvNchwFloatKernel = MlasConvNchwFloatKernelAvx512F;
  table.ConvNchwcFloatKernel = MlasConvNchwcFloatKernelAvx512F;
  table.ConvDepthwiseFloatKernel = MlasConvDepthwiseFloatKernelAvx512F;
  table.ConvPointwiseFloatKernel = MlasConvPointwiseFloatKernelAvx512F;
  table.PoolFloatKernel[MlasMaximumPooling] = MlasPoolMaximumFloatKernelAvx512F;
  table.PoolFloatKernel[MlasAveragePoolingExcludePad] = MlasPoolAverageExcludePadFloatKernelAvx512F;
  table.PoolFloatKernel[MlasAveragePoolingIncludePad] = MlasPoolAverageIncludePadFloatKernelAvx512F;
  table.NchwcBlockSize = 16;
  return true;
}

[[maybe_unused]] const bool used = UseAvx512Nchwc(GetMlasPlatform());

}  // namespace
