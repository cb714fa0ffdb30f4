// Stands in for upstream's kernel: calls the function for rows by the name and from the place that upstream does.
#pragma once

#include <cstddef>

#include "core/framework/op_kernel.h"
#include "core/platform/threadpool.h"

namespace onnxruntime {
namespace contrib {

class QLinearSoftmax final : public OpKernel {
 public:
  using EXP_OUT_DTYPE = float;
  QLinearSoftmax(const OpKernelInfo& info);
  template <class T>
  void Run(size_t N, size_t D, const T* input, T* output, const float* table, float scale, T zero,
           concurrency::ThreadPool* threads) const;
};

}  // namespace contrib
}  // namespace onnxruntime
