// The softmax of bytes by tables. Included ahead of qlinear_softmax.cc, whose kernel has a base class of ours: what it
// calls for a row is found there. Upstream divides and rounds each value, by a call of the C library; bytes have few
// values, and a row's outputs of all of them are made at once. Outputs are the same bytes.
#pragma once

#include "core/framework/op_kernel.h"
#include "core/platform/threadpool.h"

#if defined(__clang__)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace onnxruntime {
namespace contrib {

// Upstream's own, for rows that are not for ours.
template <typename T>
common::Status QlinearSoftmaxCPU(size_t rows, size_t columns, const T* input, T* output, const float* table, float scale,
                                 T zero, concurrency::ThreadPool* threads);

}  // namespace contrib
}  // namespace onnxruntime

namespace ortrim {

#if defined(__x86_64__)
#define ORTRIM_APART(value) asm("" : "+x"(value))
#elif defined(__aarch64__)
#define ORTRIM_APART(value) asm("" : "+w"(value))
#else
#define ORTRIM_APART(value)
#endif

constexpr ptrdiff_t kByteBlock = 16;

// How shares of a sum become bytes.
struct ByteRounding {
  float scale;
  int zero;

  // Divides a block and rounds it as upstream does: to the nearest, of two to the even one.
  [[gnu::always_inline]] void Round(const float* exps, float sum, uint8_t* bytes) const {
    using Floats = float __attribute__((vector_size(kByteBlock * sizeof(float))));
    using Integers = int32_t __attribute__((vector_size(kByteBlock * sizeof(int32_t))));
    using Bytes = uint8_t __attribute__((vector_size(kByteBlock)));
    constexpr float kRounding = 0x1p23f;  // added to a float, it leaves a whole number in the last bits
    constexpr int kRoundingBits = 0x4B000000;
    const Floats most = Floats{} + static_cast<float>(255 - zero);
    Floats values;
    std::memcpy(&values, exps, sizeof(values));
    values = values * scale / sum;
    values = values < most ? values : most;
    values += kRounding;
    Integers rounded;
    std::memcpy(&rounded, &values, sizeof(rounded));
    const Bytes made = __builtin_convertvector(rounded - (kRoundingBits - zero), Bytes);
    std::memcpy(bytes, &made, sizeof(made));
  }
};

// What an output of each value is, in rows of one sum after the other.
class ByteTable {
 public:
  static constexpr ptrdiff_t kValues = 256, kLargest = kValues - 1;

  // Takes the exponentials of values up to the largest of a row.
  ByteTable(const float* exps, ByteRounding rounding) : exps_(exps), rounding_(rounding) {
    // A row's sum is at least what the largest value adds to it; so these come to nothing in each row.
    const float least = 0.49f * exps[kLargest];
    const auto nothing = [=](float each) { return each * rounding.scale < least; };
    first_ = (std::partition_point(exps, exps + kLargest, nothing) - exps) / kByteBlock * kByteBlock;
    std::memset(bytes_, rounding.zero, sizeof(bytes_));
  }

  ptrdiff_t Count() const { return kValues - first_; }
  float Largest(float sum) const { return exps_[kLargest] * rounding_.scale / sum; }

  [[gnu::noinline]] const uint8_t* Fill(float sum) {
    const auto rounding = rounding_;
    const float* exps = exps_;
    for (ptrdiff_t i = first_; i < kValues; i += kByteBlock) rounding.Round(exps + i, sum, bytes_ + i);
    return bytes_;
  }

 private:
  const float* exps_;
  const ByteRounding rounding_;
  ptrdiff_t first_;  // the first value that does not come to nothing, or one some places before it
  uint8_t bytes_[kValues];
};

template <class T>
class ByteSoftmax {
 public:
  ByteSoftmax(const float* table, ptrdiff_t columns, float scale, T zero)
      : columns_(columns), upstreams_(table), zero_(zero), rounding_{scale, zero}, exps_(Ordered(table)),
        table_(exps_, rounding_) {}

  void Run(const T* input, T* output, ptrdiff_t rows) {
    for (; rows >= kTogether; rows -= kTogether, input += kTogether * columns_, output += kTogether * columns_)
      Rows<kTogether>(input, output);
    for (; rows > 0; rows--, input += columns_, output += columns_) Rows<1>(input, output);
  }

 private:
  static constexpr int kTogether = 4;

  // A table for signed bytes begins with what is 128 below the largest.
  const float* Ordered(const float* table) {
    if constexpr (!std::is_signed_v<T>) return table;
    std::copy_n(table + ByteTable::kValues / 2, ByteTable::kValues / 2, ordered_);
    std::copy_n(table, ByteTable::kValues / 2, ordered_ + ByteTable::kValues / 2);
    return ordered_;
  }

  // Sums follow upstream's order, in which each waits for the one before: those of several rows do not.
  template <int kRows>
  void Rows(const T* input, T* output) {
    ptrdiff_t below[kRows];  // what is below the largest value, of the table's
    float sums[kRows] = {};
    for (int row = 0; row < kRows; row++) below[row] = ByteTable::kLargest - Largest(input + row * columns_);
    for (ptrdiff_t i = 0; i < columns_; i++) {
#pragma clang loop unroll(full)
      for (int row = 0; row < kRows; row++) {
        sums[row] += exps_[below[row] + input[row * columns_ + i]];
        ORTRIM_APART(sums[row]);  // joined, they take more instructions
      }
    }
    for (int row = 0; row < kRows; row++)
      Row(input + row * columns_, output + row * columns_, below[row], sums[row]);
  }

  [[gnu::noinline]] T Largest(const T* input) const {
    T largest = input[0];
    for (ptrdiff_t i = 1; i < columns_; i++) largest = std::max(largest, input[i]);
    return largest;
  }

  [[gnu::noinline]] void Row(const T* input, T* output, ptrdiff_t below, float sum) {
    // What wraps differs among upstream's versions, and what is no number is undefined.
    const float bound = std::is_signed_v<T> ? 127.5f - zero_ : std::numeric_limits<float>::infinity();
    if (!(table_.Largest(sum) < bound)) {
      (void)onnxruntime::contrib::QlinearSoftmaxCPU<T>(1, columns_, input, output, upstreams_, rounding_.scale, zero_,
                                                       nullptr);
    } else if (4 * columns_ < table_.Count()) {
      Short(input, output, exps_ + below, sum);
    } else {
      const uint8_t* bytes = table_.Fill(sum) + below;
      const ptrdiff_t columns = columns_;
#pragma clang loop unroll_count(8)
      for (ptrdiff_t i = 0; i < columns; i++) output[i] = static_cast<T>(bytes[input[i]]);
    }
  }

  // Computes a row of fewer values than the table has.
  void Short(const T* input, T* output, const float* exps, float sum) const {
    for (ptrdiff_t i = 0; i < columns_; i += kByteBlock) {
      const ptrdiff_t count = std::min(kByteBlock, columns_ - i);
      float some[kByteBlock] = {};
      uint8_t bytes[kByteBlock];
      for (ptrdiff_t j = 0; j < count; j++) some[j] = exps[input[i + j]];
      rounding_.Round(some, sum, bytes);
      std::memcpy(output + i, bytes, count);
    }
  }

  const ptrdiff_t columns_;
  const float* upstreams_;
  const T zero_;
  const ByteRounding rounding_;
  float ordered_[ByteTable::kValues];
  const float* exps_;
  ByteTable table_;
};

#undef ORTRIM_APART

// What upstream's kernel is derived from, whose own names are found before those of its namespace.
class ByteSoftmaxKernel : public onnxruntime::OpKernel {
 protected:
  using OpKernel = ByteSoftmaxKernel;
  explicit ByteSoftmaxKernel(const onnxruntime::OpKernelInfo& info) : onnxruntime::OpKernel(info) {}

  template <class T>
  static onnxruntime::common::Status QlinearSoftmaxCPU(size_t rows, size_t columns, const T* input, T* output,
                                                       const float* table, float scale, T zero,
                                                       onnxruntime::concurrency::ThreadPool* threads) {
    const double values = static_cast<double>(columns);
    onnxruntime::concurrency::ThreadPool::TryParallelFor(
        threads, rows, onnxruntime::TensorOpCost{values * 3, values, values * 3}, [=](ptrdiff_t first, ptrdiff_t last) {
          ByteSoftmax<T> softmax(table, columns, scale, zero);
          softmax.Run(input + first * columns, output + first * columns, last - first);
        });
    return onnxruntime::common::Status::OK();
  }
};

}  // namespace ortrim

#define OpKernel ::ortrim::ByteSoftmaxKernel
#include "contrib_ops/cpu/quantization/qlinear_softmax.h"
#undef OpKernel

#endif
