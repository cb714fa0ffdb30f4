// Stands in for ONNX Runtime's pool: runs what is to be run in parallel in pieces, the last one first, and ends the program
// when two of them write one output.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace onnxruntime::concurrency {

struct ThreadPool {
  ptrdiff_t pieces;
  std::vector<float>& output;

  template <class Function>
  static void TryParallelFor(ThreadPool* pool, ptrdiff_t total, double, const Function& function) {
    if (pool == nullptr) return function(0, total);
    auto& output = pool->output;
    auto all = output;
    const ptrdiff_t piece = (total + pool->pieces - 1) / pool->pieces;
    for (ptrdiff_t last = total; last > 0; last -= piece) {
      std::fill(output.begin(), output.end(), NAN);
      function(std::max(last - piece, ptrdiff_t{0}), last);
      for (size_t i = 0; i < output.size(); i++) {
        if (std::isnan(output[i])) continue;
        if (!std::isnan(all[i])) std::puts("two pieces write one output"), std::exit(1);
        all[i] = output[i];
      }
    }
    output = all;
  }
};

}  // namespace onnxruntime::concurrency
