// LayerNormalization and its simplified form by normalized_rows.h. Included ahead of layer_norm_impl.cc, whose calls for
// floats find the function below: what is no template is preferred.
#pragma once

#include "core/framework/allocator.h"
#include "normalized_rows.h"

#ifdef ORTRIM_NORMALIZES

namespace onnxruntime {

namespace {

// Upstream's own.
template <typename T, typename U, typename>
void ComputeJob(const T* input, const T* scale, const T* bias, const ptrdiff_t row, const int64_t size,
                const int64_t broadcast, const float* scale_floats, const float* bias_floats, float epsilon,
                bool simplified, T* output, U* mean, U* inverse, AllocatorPtr allocator);

}  // namespace

inline void ComputeJob(const float* input, const float* scale, const float* bias, ptrdiff_t row, int64_t size,
                       int64_t broadcast, const float* scale_floats, const float* bias_floats, float epsilon,
                       bool simplified, float* output, float* mean, float* inverse, const AllocatorPtr& allocator) {
  if (!ortrim::has_avx2)
    return ComputeJob<float, float, void>(input, scale, bias, row, size, broadcast, scale_floats, bias_floats, epsilon,
                                          simplified, output, mean, inverse, allocator);
  // As LAYER_NORM_SCALE_BIAS_OFFSET.
  const int64_t offset = broadcast == 0 ? 0 : size * (broadcast > 0 ? row / broadcast : row % -broadcast);
  const ortrim::norm::Norm norm{scale + offset, bias == nullptr ? nullptr : bias + offset, size, epsilon, simplified};
  const auto [middle, factor] = norm.Run(input + row * size, output + row * size);
  if (mean != nullptr) mean[row] = middle;
  if (inverse != nullptr) inverse[row] = factor;
}

}  // namespace onnxruntime

#endif
