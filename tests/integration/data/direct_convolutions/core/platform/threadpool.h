// Stands in for ONNX Runtime's pool: runs what is to be run in parallel in pieces, one after another.
#pragma once
#include <cstddef>

namespace onnxruntime::concurrency {

class ThreadPool {
 public:
  template <class Function>
  static void TryParallelFor(ThreadPool* pool, ptrdiff_t total, double, const Function& function) {
    const ptrdiff_t piece = pool == nullptr ? total : 1;
    for (ptrdiff_t first = 0; first < total; first += piece) function(first, first + piece);
  }
};

}  // namespace onnxruntime::concurrency
