// What kernels for NCHWc layout with block size 8 are given: a run along one row, for up to four blocks of filters.
// Included behind mlasi.h by each processor's. Upstream: core/mlas/lib/{mlasi.h,snchwc.cpp}.
#pragma once

namespace {

constexpr size_t kBlock = 8;
constexpr size_t kBytes = kBlock * sizeof(float);
enum Flags : unsigned { kAccumulate = 1, kBias = 2, kRelu = 4 };

#define ORTRIM_UNROLLED _Pragma("clang loop unroll(full)") for

template <typename T>
T* Advance(T* pointer, size_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(pointer) + bytes);
}

// The pointers are where the run stands.
struct Row {
  const float* input;
  const float* filter;
  float* output;
  size_t stride, dilation, input_stride, filter_stride, output_stride, height, width;
  const float* input_base;
  size_t input_width, dilated_input_width;
  const float* bias;
  unsigned flags;

  void SkipTwoFilters() {
    filter = Advance(filter, 2 * filter_stride);
    output = Advance(output, 2 * output_stride);
    bias += 2 * kBlock;
  }
};

// Whether a pixel lies in the row of the input, rather than in the padding.
bool IsInside(const float* pixel, const float* base, size_t width) {
  return reinterpret_cast<uintptr_t>(pixel) - reinterpret_cast<uintptr_t>(base) < width;
}

// Computes a row for each of `filters` blocks: `left` and `right` pixels reach into the padding, `count` do not.
template <typename Kernel>
void RunFilters(Row row, size_t filters, size_t left, size_t count, size_t right);

template <typename Kernel>
void MLASCALL Convolve(const float* input, const float* filter, float* output, size_t stride, size_t dilation,
                       size_t filters, size_t input_stride, size_t filter_stride, size_t output_stride, size_t height,
                       size_t width, const float* input_base, size_t input_width, size_t dilated_input_width,
                       size_t left, size_t count, size_t right, const float* bias, unsigned flags) {
  const Row row{input, filter, output, stride, dilation, input_stride, filter_stride, output_stride, height, width,
                input_base, input_width, dilated_input_width, bias, flags};
  RunFilters<Kernel>(row, filters, left, count, right);
}

// A kernel of one pixel is one row of as many pixels as there are blocks of input channels.
template <typename Kernel>
void MLASCALL ConvolvePointwise(const float* input, const float* filter, float* output, size_t stride, size_t channels,
                                size_t filters, size_t input_stride, size_t filter_stride, size_t output_stride,
                                size_t count, const float* bias, unsigned flags) {
  const Row row{input, filter, output, stride, input_stride, 0, filter_stride, output_stride, 1, channels,
                input, 0, 0, bias, flags};
  RunFilters<Kernel>(row, filters, 0, count, 0);
}

}  // namespace
