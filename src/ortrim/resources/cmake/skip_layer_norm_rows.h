// SkipLayerNormalization and its simplified form by normalized_rows.h. Included ahead of skip_layer_norm.cc, whose calls
// find the function below: what is no template is preferred.
#pragma once

#include <cstdint>

#include "normalized_rows.h"

#ifdef ORTRIM_NORMALIZES

namespace onnxruntime {
namespace contrib {

namespace {

// Upstream's own.
template <typename T, typename>
void ComputeJob(const T* input, const T* skip, const T* scale, const T* offset, const T* bias, ptrdiff_t row, int size,
                int64_t skip_size, float epsilon, bool simplified, T* output, T* sums);

}  // namespace

inline void ComputeJob(const float* input, const float* skip, const float* scale, const float* offset, const float* bias,
                       ptrdiff_t row, int size, int64_t skip_size, float epsilon, bool simplified, float* output,
                       float* sums) {
  if (!ortrim::has_avx2)
    return ComputeJob<float, void>(input, skip, scale, offset, bias, row, size, skip_size, epsilon, simplified, output,
                                   sums);
  const ptrdiff_t start = row * size;
  const ortrim::norm::Norm norm{scale, offset, size, epsilon, simplified};
  norm.RunOnSums(input + start, skip + start % skip_size, bias, output + start, sums == nullptr ? nullptr : sums + start);
}

}  // namespace contrib
}  // namespace onnxruntime

#endif
