// Convolutions with few positions, and those whose windows lie in place, without MLAS's copy of each window and without
// a GEMM of four columns. Included ahead of conv.cc, whose calls of MlasConv lead here.
//
// A window's elements are in the order of a filter's, so that each output is the product of two rows in memory: sound that
// is cut into overlapping frames is read where it lies; of few positions the windows are copied, one after another.
#pragma once

#include "core/mlas/inc/mlas.h"

#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/platform/threadpool.h"
#include "widest_vector.h"

namespace ortrim {

// Filters of `length` floats, and `windows` windows of as many, of which one begins `apart` floats after the other, as
// filters do that `filters_apart` says. Of mirrored ones `sign` is not 0, and `length` is half of what they have.
struct Rows {
  size_t length, windows, apart, filters_apart;
  float sign = 0;
};

// Of filters that begin with 0 and mirror themselves in their middle, as those of a Fourier transform of sound do, the
// first `even` are even, the others odd.
struct Mirrored {
  bool all = false;
  size_t even = 0;
};
constexpr size_t kMostMirrored = 2048;  // elements of a filter

// What a pair differs by counts for nothing up to 2^-40 of the filters' largest element.
inline Mirrored FindMirrored(const float* filters, size_t count, size_t length) {
  Mirrored found;
  float largest = 0;
  for (size_t i = 0; i < count * length; i++) largest = std::max(largest, std::fabs(filters[i]));
  const float most = 0x1p-40f * largest;
  bool all = length % 2 == 0 && length >= 64 && length <= kMostMirrored && std::isfinite(largest);
  for (size_t filter = 0; all && filter < count; filter++, filters += length) {
    bool even = found.even == filter, odd = true;
    for (size_t i = 1; i < length / 2; i++) {
      even = even && std::fabs(filters[i] - filters[length - i]) <= most;
      odd = odd && std::fabs(filters[i] + filters[length - i]) <= most;
    }
    found.even += even;
    all = filters[0] == 0 && (even || odd);
  }
  found.all = all;
  return found;
}

// Adds to each element of some windows, or subtracts from it, the one that mirrors it, so that one product does for both.
inline void Fold(const Rows& rows, const float* window, size_t windows, float* __restrict folded) {
  for (; windows != 0; windows--, window += rows.apart, folded += rows.length) {
    const float* last = window + 2 * rows.length - 1;
    for (size_t i = 0; i + 1 < rows.length; i++) folded[i] = window[1 + i] + rows.sign * *(last - i);
    folded[rows.length - 1] = window[rows.length];
  }
}

#define ORTRIM_UNROLLED _Pragma("clang loop unroll(full)") for

// The last elements of a row, as many as a vector has too many before them masked.
constexpr int kMost = 16;
constexpr int kRest[2 * kMost] = {0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
                                  -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

// The sums of `kFilters` filters' products with `kWindows` windows.
template <int kWidth, int kFilters, int kWindows>
struct Sums {
  using V = float __attribute__((vector_size(4 * kWidth)));
  using M = int __attribute__((vector_size(4 * kWidth)));
  using Eight = float __attribute__((vector_size(32)));
  using Four = float __attribute__((vector_size(16)));
  static constexpr int kCount = (kFilters * kWindows + 3) / 4 * 4;
  V of[kCount];

  // Of filters and windows those that are fewer stay in registers.
  static constexpr bool kHeld = kFilters < kWindows;
  static constexpr int kOuter = kHeld ? kWindows : kFilters, kInner = kHeld ? kFilters : kWindows;
  [[gnu::always_inline]] V& Sum(int o, int i) { return of[kHeld ? i * kWindows + o : o * kWindows + i]; }

  template <bool kMasked>
  [[gnu::always_inline]] static V Load(const float* from, const M& used) {
    V vector;
    __builtin_memcpy(&vector, from, sizeof(V));
    return kMasked ? (V)((M)vector & used) : vector;
  }

  // Adds the products of one vector of each row; `used` are the elements that count.
  template <bool kMasked>
  [[gnu::always_inline]] void Add(const Rows& rows, const float* filter, const float* window, const M& used) {
    const float *outer = kHeld ? window : filter, *inner = kHeld ? filter : window;
    const size_t outer_step = kHeld ? rows.apart : rows.filters_apart, inner_step = kHeld ? rows.filters_apart : rows.apart;
    V held[kInner];
    ORTRIM_UNROLLED (int i = 0; i < kInner; i++) held[i] = Load<kMasked>(inner + i * inner_step, used);
    ORTRIM_UNROLLED (int o = 0; o < kOuter; o++) {
      const V factor = Load<kMasked>(outer + o * outer_step, used);
      ORTRIM_UNROLLED (int i = 0; i < kInner; i++) Sum(o, i) += factor * held[i];
    }
  }

#if defined(__aarch64__)
  static constexpr int kTogether = kInner > 2 ? 2 : 4;  // vectors of a row that one load brings

  struct Several {
    V each[kTogether];
  };

  // Clang lets a load move its pointer on only where it cannot reckon what that is, and loads all rows ahead, for which
  // there are no registers, unless the load waits for the sums of a row.
  [[gnu::always_inline]] Several LoadOn(const float*& from, int o) {
    ORTRIM_UNROLLED (int i = 0; i < kInner; i++) asm("" : "+r"(from), "+w"(Sum(o, i)));
    Several several;
    if constexpr (kTogether == 4) {
      const float32x4x4_t loaded = vld1q_f32_x4(from);
      ORTRIM_UNROLLED (int i = 0; i < 4; i++) several.each[i] = loaded.val[i];
    } else {
      const float32x4x2_t loaded = vld1q_f32_x2(from);
      ORTRIM_UNROLLED (int i = 0; i < 2; i++) several.each[i] = loaded.val[i];
    }
    from += kTogether * kWidth;
    return several;
  }

  [[gnu::always_inline]] void AddSeveral(const float** outer, const float** inner) {
    Several held[kInner];
    ORTRIM_UNROLLED (int i = 0; i < kInner; i++) held[i] = LoadOn(inner[i], kOuter - 1);
    ORTRIM_UNROLLED (int o = 0; o < kOuter; o++) {
      const Several factors = LoadOn(outer[o], (o + kOuter - 2) % kOuter);
      ORTRIM_UNROLLED (int v = 0; v < kTogether; v++)
        ORTRIM_UNROLLED (int i = 0; i < kInner; i++) Sum(o, i) += factors.each[v] * held[i].each[v];
    }
  }

  // Adds the products of all whole groups of vectors, and returns of how many elements.
  template <int kSteps>
  [[gnu::always_inline]] size_t AddGroups(const Rows& rows, const float* filter, const float* window) {
    const float *outer[kOuter], *inner[kInner];
    const size_t apart = rows.filters_apart;
    ORTRIM_UNROLLED (int o = 0; o < kOuter; o++) outer[o] = kHeld ? window + o * rows.apart : filter + o * apart;
    ORTRIM_UNROLLED (int i = 0; i < kInner; i++) inner[i] = kHeld ? filter + i * apart : window + i * rows.apart;
    size_t left = rows.length;
#pragma clang loop unroll(disable)
    for (; left >= kSteps * kWidth; left -= kSteps * kWidth)
      ORTRIM_UNROLLED (int i = 0; i < kSteps; i += kTogether) AddSeveral(outer, inner);
    return rows.length - left;
  }
#endif

  // Sixteen at a time, a row is added up in two halves: in one, the errors of the demo's sums after silence are as large
  // as those of MLAS's, and of the other sign.
  [[gnu::always_inline]] Sums(const Rows& rows, const float* filter, const float* window) {
    const M all{};
    constexpr int kHalves = kWidth / 8 > 1 ? 2 : 1, kSteps = 4, kGroup = kSteps * kWidth;
    V before[kCount];
    size_t k = 0, groups = rows.length / kGroup;
#if defined(__aarch64__)
    ORTRIM_UNROLLED (int i = 0; i < kCount; i++) of[i] = V{};
    k = AddGroups<kSteps>(rows, filter, window);
#else
#pragma clang loop unroll(disable)
    for (int half = kHalves; half != 0; half--) {
      if (half != kHalves) std::memcpy(before, of, sizeof(of));
      ORTRIM_UNROLLED (int i = 0; i < kCount; i++) of[i] = V{};
      for (const size_t end = groups / half * kGroup; k != end; k += kGroup)
        ORTRIM_UNROLLED (int i = 0; i < kSteps; i++) Add<false>(rows, filter + k + i * kWidth, window + k + i * kWidth, all);
    }
#endif
#pragma clang loop unroll(disable)
    for (; k + kWidth <= rows.length; k += kWidth) Add<false>(rows, filter + k, window + k, all);
    if (k < rows.length) {
      const size_t last = rows.length - kWidth;
      M used;
      __builtin_memcpy(&used, kRest + kMost - kWidth + rows.length - k, sizeof(M));
      Add<true>(rows, filter + last, window + last, used);
    }
    if constexpr (kHalves > 1) ORTRIM_UNROLLED (int i = 0; i < kCount; i++) of[i] += before[i];
  }

  // Stores the sums of four vectors' elements.
  [[gnu::always_inline]] static void Reduce(const V* vectors, float* sums) {
    Four each[4];
    ORTRIM_UNROLLED (int i = 0; i < 4; i++) {
      if constexpr (kWidth == 4) {
        each[i] = vectors[i];
      } else {
        Eight half;
        if constexpr (kWidth == 8)
          half = vectors[i];
        else
          half = __builtin_shufflevector(vectors[i], vectors[i], 0, 1, 2, 3, 4, 5, 6, 7) +
                 __builtin_shufflevector(vectors[i], vectors[i], 8, 9, 10, 11, 12, 13, 14, 15);
        each[i] = __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
      }
    }
    ORTRIM_UNROLLED (int i = 0; i < 4; i += 2)
      each[i] = __builtin_shufflevector(each[i], each[i + 1], 0, 2, 4, 6) +
                __builtin_shufflevector(each[i], each[i + 1], 1, 3, 5, 7);
    each[0] = __builtin_shufflevector(each[0], each[2], 0, 2, 4, 6) +
              __builtin_shufflevector(each[0], each[2], 1, 3, 5, 7);
    __builtin_memcpy(sums, &each[0], sizeof(Four));
  }

  [[gnu::always_inline]] void Store(const Rows& rows, const float* bias, float* output) {
    float sums[kCount];
    ORTRIM_UNROLLED (int i = 0; i < kCount; i += 4) Reduce(of + i, sums + i);
    ORTRIM_UNROLLED (int m = 0; m < kFilters; m++) {
      const float offset = bias == nullptr ? 0.0f : bias[m];
      ORTRIM_UNROLLED (int n = 0; n < kWindows; n++) output[m * rows.windows + n] = sums[m * kWindows + n] + offset;
    }
  }
};

// The vectors of processors: how many floats in each, and how many filters with up to four windows have sums that stay in
// registers.
#define ORTRIM_VECTORS(name, width, attributes, ...)                                                            \
  struct name {                                                                                                 \
    static constexpr size_t kWidth = width, kFilters[] = {0, __VA_ARGS__};                                      \
    template <int kFilters, int kWindows>                                                                       \
    attributes [[gnu::noinline]] static void Multiply(const Rows& rows, const float* filter, const float* window, \
                                                      const float* bias, float* output) {                       \
      Sums<width, kFilters, kWindows>(rows, filter, window).Store(rows, bias, output);                          \
    }                                                                                                           \
  };
#if defined(__x86_64__)
ORTRIM_VECTORS(Avx2, 8, [[gnu::target("avx2,fma")]], 8, 6, 4, 3)
ORTRIM_VECTORS(Avx512, 16, [[gnu::target("avx512f,avx2,fma")]], 8, 6, 5, 4)
#else
ORTRIM_VECTORS(Neon, 4, , 8, 8, 6, 5)
#endif

template <class Vectors, int kWindows>
void MultiplyAll(const Rows& rows, const float* filter, const float* window, const float* bias, float* output,
                 size_t filters) {
  const auto run = [&](auto multiply, size_t count) {
    for (; filters >= count; filters -= count) {
      multiply(rows, filter, window, bias, output);
      filter += count * rows.filters_apart;
      output += count * rows.windows;
      if (bias != nullptr) bias += count;
    }
  };
  constexpr size_t kFilters = Vectors::kFilters[kWindows];
  run(Vectors::template Multiply<kFilters, kWindows>, kFilters);
  run(Vectors::template Multiply<1, kWindows>, 1);
}

// Multiplies some filters with all windows, four of them at a time.
template <class Vectors>
void Multiply(const Rows& rows, const float* filter, const float* window, const float* bias, float* output,
              size_t filters) {
  float folded[4 * kMostMirrored / 2];
  Rows used = rows;
  if (rows.sign != 0) used.apart = rows.length, filter++;
  for (size_t left = rows.windows; left != 0;) {
    const size_t some = std::min<size_t>(left, 4);
    const float* windows = window;
    if (rows.sign != 0) Fold(rows, window, some, folded), windows = folded;
    const auto multiply = some == 4   ? MultiplyAll<Vectors, 4>
                          : some == 3 ? MultiplyAll<Vectors, 3>
                          : some == 2 ? MultiplyAll<Vectors, 2>
                                      : MultiplyAll<Vectors, 1>;
    multiply(used, filter, windows, bias, output, filters);
    left -= some, window += some * rows.apart, output += some;
  }
}

// Copies the window of each position, one after another: of all channels what one of the kernel's places meets, or zeros.
inline void CopyWindows(const MLAS_CONV_PARAMETERS& of, const float* input, float* windows) {
  const size_t height = of.InputShape[0], width = of.InputShape[1], places = of.KernelShape[0] * of.KernelShape[1];
  for (size_t position = 0; position < of.OutputSize; position++) {
    const size_t top = position / of.OutputShape[1] * of.StrideShape[0] - of.Padding[0];
    const size_t left = position % of.OutputShape[1] * of.StrideShape[1] - of.Padding[1];
    for (size_t place = 0; place < places; place++) {
      const size_t y = top + place / of.KernelShape[1] * of.DilationShape[0];
      const size_t x = left + place % of.KernelShape[1] * of.DilationShape[1];
      const bool inside = y < height && x < width;
      const float zero = 0.0f, *from = inside ? input + y * width + x : &zero;
      const size_t step = inside ? of.InputSize : 0;
      float* to = windows + place;
#pragma clang loop unroll_count(4)
      for (size_t channel = 0; channel < of.InputChannels; channel++, from += step, to += places) *to = *from;
    }
    windows += of.K;
  }
}

// Returns the function for the widest vectors that the processor and the system have; null without such vectors.
inline auto WidestMultiply() -> void (*)(const Rows&, const float*, const float*, const float*, float*, size_t) {
#if defined(__x86_64__)
  const int width = WidestVector();
  return width == 16 ? Multiply<Avx512> : width == 8 ? Multiply<Avx2> : nullptr;
#else
  return Multiply<Neon>;
#endif
}
inline const auto multiply = WidestMultiply();

// Whether each window lies in the input as one row.
inline bool LieInPlace(const MLAS_CONV_PARAMETERS& of) {
  const bool padded = (of.Padding[0] | of.Padding[1] | of.Padding[2] | of.Padding[3]) != 0;
  const bool whole = of.K == of.InputChannels * of.InputSize && of.OutputSize == 1;
  return !padded && of.DilationShape[0] * of.DilationShape[1] == 1 &&
         (whole || (of.InputChannels == 1 && of.InputShape[0] * of.KernelShape[0] == 1));
}

// As MlasConv; `mirrored` are filters of one row of one channel, in one group.
inline void Convolve(const Mirrored& mirrored, const MLAS_CONV_PARAMETERS* of, const float* input, const float* filter,
                     const float* bias, float* working, float* output, onnxruntime::concurrency::ThreadPool* threads) {
  const bool in_place = of->Dimensions == 2 && LieInPlace(*of);
  const bool few = of->Dimensions == 2 && of->Algorithm == MlasConvAlgorithmExpandThenGemm && of->OutputSize < 16;
  if (!(in_place || few) || of->Beta != 0.0f || of->K < 16 || multiply == nullptr)
    return MlasConv(of, input, filter, bias, working, output, threads);
  const bool folded = in_place && mirrored.all;
  const Rows rows{folded ? of->K / 2 : of->K, of->OutputSize, in_place ? of->StrideShape[1] : of->K, of->K};
  constexpr size_t kBlock = 12;  // whose rows of 512 stay in the first cache
  const size_t blocks = (of->FilterCount + kBlock - 1) / kBlock;
  const double cost = double(kBlock) * rows.windows * rows.length / 8;
  for (size_t image = 0; image < of->BatchCount; image++) {
    for (size_t group = 0; group < of->GroupCount; group++) {
      const float* windows = input;
      if (!in_place) CopyWindows(*of, input, working), windows = working;
      const float* filters = filter + group * of->FilterCount * of->K;
      const float* offsets = bias == nullptr ? bias : bias + group * of->FilterCount;
      onnxruntime::concurrency::ThreadPool::TryParallelFor(
          threads, blocks, cost, [&](ptrdiff_t begin, ptrdiff_t end) {
            const size_t first = begin * kBlock, last = std::min<size_t>(end * kBlock, of->FilterCount);
            const size_t odd = folded ? std::clamp(mirrored.even, first, last) : last;
            const auto some = [&](size_t from, size_t to, float sign) {
              Rows used = rows;
              used.sign = folded ? sign : 0;
              if (from != to)
                multiply(used, filters + from * rows.filters_apart, windows, offsets == nullptr ? offsets : offsets + from,
                         output + from * rows.windows, to - from);
            };
            some(first, odd, 1), some(odd, last, -1);
          });
      input += of->InputChannels * of->InputSize;
      output += of->FilterCount * of->OutputSize;
    }
  }
  const size_t count = of->BatchCount * of->GroupCount * of->FilterCount * of->OutputSize;
  MlasActivation(of->Activation, output - count, nullptr, 1, count, count);
}

}  // namespace ortrim

#ifndef BUILD_MLAS_NO_ONNXRUNTIME
#include "core/framework/op_kernel.h"
#include "core/providers/cpu/nn/conv_attributes.h"

namespace ortrim {

// A convolution's attributes, and what is known of the filters that its model has. As large as upstream's class wherever
// that is a member: fused_conv.cc includes this, too.
struct OfFilters : onnxruntime::ConvAttributes {
  explicit OfFilters(const onnxruntime::OpKernelInfo& info) : ConvAttributes(info) {
    const onnxruntime::Tensor* filters = nullptr;
    if (!info.TryGetConstantInput(1, &filters) || !filters->IsDataType<float>()) return;
    const auto& shape = filters->Shape();
    const int64_t axes = shape.NumDimensions(), count = axes < 3 ? 0 : shape[0], length = axes < 3 ? 0 : shape[axes - 1];
    if (group == 1 && count * length != 0 && shape.Size() == count * length)
      mirrored = FindMirrored(filters->Data<float>(), count, length);
  }

  Mirrored mirrored;
};

}  // namespace ortrim

#define ConvAttributes ::ortrim::OfFilters
#undef MlasConv  // which depthwise_convolutions.h has defined
#define MlasConv(...) ortrim::Convolve(conv_attrs_.mirrored, __VA_ARGS__)
#endif

#endif
