// Stands in for ONNX Runtime's pool: runs what is to be run in parallel in pieces, the last one first.
#pragma once

#include <algorithm>
#include <cstddef>

namespace onnxruntime {

struct TensorOpCost {
  double loaded, stored, cycles;
};

namespace concurrency {

struct ThreadPool {
  ptrdiff_t piece;

  template <class Function>
  static void TryParallelFor(ThreadPool* pool, ptrdiff_t total, TensorOpCost, const Function& function) {
    const ptrdiff_t piece = pool == nullptr ? total : pool->piece;
    for (ptrdiff_t last = total; last > 0; last -= piece) function(std::max(last - piece, ptrdiff_t{0}), last);
  }
};

}  // namespace concurrency
}  // namespace onnxruntime
