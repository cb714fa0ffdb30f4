// Compares the softmax of bytes of byte_softmax.h with upstream's own, which the test cuts out of qlinear_softmax.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "byte_softmax.h"
#include "contrib_ops/cpu/quantization/qlinear_softmax.h"

namespace gsl {
template <class T>
using span = T*;
}

namespace onnxruntime {
namespace contrib {

#include "softmax_of_upstream.inc"

QLinearSoftmax::QLinearSoftmax(const OpKernelInfo& info) : OpKernel(info) {}

template <class T>
void QLinearSoftmax::Run(size_t N, size_t D, const T* input, T* output, const float* table, float scale, T zero,
                         concurrency::ThreadPool* threads) const {
  QlinearSoftmaxCPU<T>(N, D, input, output, table, scale, zero, threads);
}

}  // namespace contrib
}  // namespace onnxruntime

std::mt19937 random_numbers(7);

int Between(int low, int high) { return low + static_cast<int>(random_numbers() % (high - low + 1)); }

template <class T>
bool Same() {
  using Limits = std::numeric_limits<T>;
  const size_t rows = Between(1, 11), columns = Between(0, 2) == 0 ? Between(1, 24) : Between(1, 700);
  const int shape = Between(0, 4), low = Between(Limits::min(), Limits::max()), high = Between(low, Limits::max());
  const float scales[] = {0.001f, 0.02f, 0.1f, 0.7f, 3.0f}, steps[] = {255, 256, 100, 1000, 1};
  std::vector<T> input(rows * columns), expected(input.size(), T{99}), output(input.size(), T{77});
  for (T& each : input) {
    each = static_cast<T>(Between(low, high));
    if (shape == 0 && Between(0, 30) != 0) each = static_cast<T>(low);  // few are larger
    if (shape == 1) each = static_cast<T>(high);
    if (shape == 2) each = static_cast<T>(Between(0, 1) == 0 ? Limits::min() : Limits::max());
  }
  const T zeros[] = {0, Limits::min(), Limits::max(), 5, T(128)};
  const float scale = steps[Between(0, 4)];
  const T zero = zeros[Between(0, 4)];
  float table[256];
  onnxruntime::contrib::QlinearBuildLookupTableUint32(table, scales[Between(0, 4)], columns, std::is_signed_v<T>);
  onnxruntime::concurrency::ThreadPool threads{Between(1, 6)};
  onnxruntime::contrib::QlinearSoftmaxCPU<T>(rows, columns, input.data(), expected.data(), table, scale, zero, nullptr);
  const onnxruntime::contrib::QLinearSoftmax kernel{onnxruntime::OpKernelInfo()};
  kernel.Run<T>(rows, columns, input.data(), output.data(), table, scale, zero, Between(0, 1) == 0 ? nullptr : &threads);
  const bool same = expected == output;
  if (!same) std::printf("%zu x %zu, scale %g, zero %d\n", rows, columns, scale, zero);
  return same;
}

int main(int, char** words) {
  const int count = std::atoi(words[1]);
  for (int i = 0; i < count; i++)
    if (!(i % 2 == 0 ? Same<uint8_t>() : Same<int8_t>())) return 1;
  std::printf("%d are the same\n", count);
}
