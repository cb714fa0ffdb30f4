// Lets a convolution in NCHWc layout keep its filters transformed, as winograd.h takes them. Included ahead of
// nchwc_ops.cc, whose kernel's attributes hold them; the first inference that is faster with them makes them.
#pragma once

#include <atomic>

#include "contrib_ops/cpu/fused_activation.h"
#include "core/common/common.h"
#include "core/framework/op_kernel.h"
#include "core/mlas/inc/mlas.h"
#include "core/providers/cpu/nn/conv_attributes.h"
#include "core/providers/cpu/nn/pool.h"

namespace ortrim {

// As MlasNchwcConv, with fewer products; returns false, and computes nothing, where that would not be faster. From 1.24
// on more follows, of MLAS's own kernels.
bool ConvolveTiled(std::atomic<const float*>& kept, const int64_t* input_shape, const int64_t* kernel,
                   const int64_t* dilation, const int64_t* padding, const int64_t* stride, const int64_t* output_shape,
                   size_t groups, const float* input, const float* filter, const float* bias, float* output,
                   const MLAS_ACTIVATION* activation, bool zero, MLAS_THREADPOOL* pool, ...);

#if defined(__x86_64__)
bool HasTransforms();  // which are AVX2's
#else
constexpr bool HasTransforms() { return true; }
#endif

struct WithFilters : onnxruntime::ConvAttributes {
  explicit WithFilters(const onnxruntime::OpKernelInfo& info) : ConvAttributes(info) {
    const onnxruntime::Tensor* filter = nullptr;
    constant = HasTransforms() && info.TryGetConstantInput(1, &filter);
  }
  ~WithFilters() { delete[] kept.load(); }

  bool constant;
  mutable std::atomic<const float*> kept{nullptr};
};

template <typename... Arguments>
void Convolve(const WithFilters& attributes, Arguments... arguments) {
  if (!attributes.constant || !ConvolveTiled(attributes.kept, arguments...)) MlasNchwcConv(arguments...);
}

}  // namespace ortrim

#define ConvAttributes ::ortrim::WithFilters
#define MlasNchwcConv(...) ::ortrim::Convolve(conv_attrs_, __VA_ARGS__)
