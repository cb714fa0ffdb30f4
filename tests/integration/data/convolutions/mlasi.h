// What avx512_convolutions.cc reads of MLAS's own header, for a program that has nothing else of MLAS but its assembly.
#pragma once
#include <cstddef>
#include <cstdint>

#define MLASCALL

using MLAS_CONV_FLOAT_KERNEL = void(const float*, const float*, float*, size_t, size_t, size_t, size_t, size_t, size_t,
                                    size_t, size_t, const float*, size_t, size_t, size_t, size_t, size_t, const float*,
                                    unsigned);
using MLAS_CONV_DEPTHWISE_FLOAT_KERNEL = void(const float*, const float*, float*, size_t, size_t, size_t, size_t, size_t,
                                              const float*, size_t, size_t, size_t, size_t, size_t, const float*,
                                              unsigned);
using MLAS_CONV_POINTWISE_FLOAT_KERNEL = void(const float*, const float*, float*, size_t, size_t, size_t, size_t, size_t,
                                              size_t, size_t, const float*, unsigned);

extern "C" {
MLAS_CONV_FLOAT_KERNEL MlasConvNchwFloatKernelFma3, MlasConvNchwcFloatKernelFma3;
MLAS_CONV_DEPTHWISE_FLOAT_KERNEL MlasConvDepthwiseFloatKernelFma3;
MLAS_CONV_POINTWISE_FLOAT_KERNEL MlasConvPointwiseFloatKernelFma3;
}

struct MLAS_PLATFORM {
  uint32_t NchwcBlockSize = 8;
  MLAS_CONV_FLOAT_KERNEL* ConvNchwFloatKernel = MlasConvNchwFloatKernelFma3;
  MLAS_CONV_FLOAT_KERNEL* ConvNchwcFloatKernel = MlasConvNchwcFloatKernelFma3;
  MLAS_CONV_DEPTHWISE_FLOAT_KERNEL* ConvDepthwiseFloatKernel = MlasConvDepthwiseFloatKernelFma3;
  MLAS_CONV_POINTWISE_FLOAT_KERNEL* ConvPointwiseFloatKernel = MlasConvPointwiseFloatKernelFma3;
};

inline MLAS_PLATFORM& GetMlasPlatform() {
  static MLAS_PLATFORM table;
  return table;
}
