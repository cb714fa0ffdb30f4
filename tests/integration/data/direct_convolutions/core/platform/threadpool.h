// Stands in for ONNX Runtime's pool: runs what is to be run in parallel in pieces, the last one first, so that what one
// writes beyond its end is seen.
#pragma once
#include <cstddef>

namespace onnxruntime::concurrency {

class ThreadPool {
 public:
  template <class Function>
  static void TryParallelFor(ThreadPool* pool, ptrdiff_t total, double, const Function& function) {
    const ptrdiff_t piece = pool == nullptr ? total : 1;
    for (ptrdiff_t last = total; last != 0; last -= piece) function(last - piece, last);
  }
};

}  // namespace onnxruntime::concurrency
