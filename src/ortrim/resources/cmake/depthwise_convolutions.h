// Depthwise convolutions in plain layout without MLAS's copy of all windows and its GEMM of one row. Included ahead of
// conv.cc, and of direct_convolutions.h, whose calls of MlasConv lead here.
//
// A part of a channel is copied with its padding, so that no sum asks where it is; with a stride of two, even columns are
// apart from odd ones. Eight outputs in a row are computed at once; each adds its products in MLAS's order.
#pragma once

#include "core/mlas/inc/mlas.h"

#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "core/platform/threadpool.h"
#include "widest_vector.h"

#if defined(__x86_64__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#endif

namespace ortrim::depthwise {

#define ORTRIM_UNROLLED _Pragma("clang loop unroll(full)") for

using Four = float __attribute__((vector_size(16)));
using Eight = float __attribute__((vector_size(32)));
#if defined(__x86_64__)
using Vector = Eight;
#define ORTRIM_REGISTER "+x"
#else
using Vector = Four;
#define ORTRIM_REGISTER "+w"
#endif
constexpr ptrdiff_t kLanes = sizeof(Vector) / sizeof(float);
constexpr ptrdiff_t kWide = 8, kVectors = kWide / kLanes;  // outputs at once in a row
constexpr ptrdiff_t kRoom = 6144;                          // floats of a copy, which stay in the first cache

template <class V>
[[gnu::always_inline]] inline V Load(const float* from) {
  V vector;
  __builtin_memcpy(&vector, from, sizeof(V));
  return vector;
}
template <class V>
[[gnu::always_inline]] inline void Store(float* to, const V& vector) {
  __builtin_memcpy(to, &vector, sizeof(V));
}

// As MLAS bounds: what is no number stays.
[[gnu::always_inline]] inline Vector Bounded(Vector sum, float low, float high) {
#if defined(__aarch64__)
  return (Vector)vminq_f32(vmaxq_f32((float32x4_t)sum, vdupq_n_f32(low)), vdupq_n_f32(high));
#else
  const Vector lows = low - Vector{}, highs = high - Vector{};
  sum = sum < lows ? lows : sum;
  return sum > highs ? highs : sum;
#endif
}

// Along an axis.
struct Axis {
  ptrdiff_t input, output, kernel, stride, dilation, before;
  Axis(const MLAS_CONV_PARAMETERS& of, int i)
      : input(of.InputShape[i]), output(of.OutputShape[i]), kernel(of.KernelShape[i]), stride(of.StrideShape[i]),
        dilation(of.DilationShape[i]), before(of.Padding[i]) {}
  ptrdiff_t Reach() const { return (kernel - 1) * dilation; }
  ptrdiff_t Needs(ptrdiff_t outputs) const { return (outputs - 1) * stride + Reach() + 1; }
};

// How a convolution's channels are computed: in parts of `rows` by `columns` outputs, the last of which overlap others.
struct Plan {
  const MLAS_CONV_PARAMETERS& of;
  Axis y, x;
  bool square, bounded = true;
  float low = 0, high = std::numeric_limits<float>::infinity();
  ptrdiff_t columns, rows, phase, pitch, copied;  // `phase` floats of a copied row are even columns, or all of them
  ptrdiff_t slices;  // of a channel, for threads: parts of its rows, or of the columns of only one; the last may be two

  // Rows at once of a kernel of 3x3 or 5x5: more read less of the input, and are twice the code.
  static constexpr ptrdiff_t High(ptrdiff_t places, ptrdiff_t stride) { return places * stride == 3 ? 4 : 2; }

  // What each of equal parts has that are as few as may be, of a multiple of `unit` and no more than `most`.
  static ptrdiff_t Share(ptrdiff_t all, ptrdiff_t most, ptrdiff_t unit) {
    const ptrdiff_t parts = (all + most - 1) / most, share = (all + parts - 1) / parts;
    return std::min(all, (share + unit - 1) / unit * unit);
  }

  explicit Plan(const MLAS_CONV_PARAMETERS& convolution) : of(convolution), y(of, 0), x(of, 1) {
    square = y.kernel == x.kernel && (x.kernel == 3 || x.kernel == 5) && y.stride == x.stride && y.dilation * x.dilation == 1;
    columns = Share(x.output, square ? 128 : 1024, kWide);
    phase = std::max(columns, kWide) + x.Reach() / x.stride;
    pitch = phase * x.stride;
    const ptrdiff_t least = square ? High(x.kernel, x.stride) : 1;
    rows = least;
    while (rows < y.output && y.Needs(rows + least) * pitch <= kRoom) rows += least;
    copied = y.Needs(rows) * pitch;
    rows = Share(y.output, rows, least);
    slices = y.output > 1 ? y.output / rows : x.output / columns;
    const auto& activation = *of.Activation;
    if (activation.ActivationKind == MlasClipActivation)
      low = activation.Parameters.Clip.minimum, high = activation.Parameters.Clip.maximum;
    else
      bounded = activation.ActivationKind == MlasReluActivation;
  }

  bool Fits() const {
    return of.InputChannels == 1 && of.FilterCount == 1 && of.Beta == 0.0f && of.Algorithm != MlasConvAlgorithmGemmDirect &&
           x.stride <= 2 && (square || y.kernel == 1) && copied <= kRoom;
  }

  // Copies the inputs of a part, around which the copy has zeros.
  void Copy(const float* input, ptrdiff_t top, ptrdiff_t left, float* copy) const {
    const ptrdiff_t y0 = top * y.stride - y.before, x0 = left * x.stride - x.before;
    const ptrdiff_t first = std::max(-y0, ptrdiff_t{0}), last = std::min(y.Needs(rows), y.input - y0);
    const ptrdiff_t begin = std::max(-x0, ptrdiff_t{0}), count = std::min(x.Needs(columns), x.input - x0) - begin;
    if (count <= 0) return;
    for (ptrdiff_t row = first; row < last; row++) {
      const float* from = input + (y0 + row) * x.input + x0 + begin;
      float* to = copy + row * pitch;
      if (x.stride == 1)
        std::memcpy(to + begin, from, count * sizeof(float));
      else
        Part(from, count, to + begin / 2, begin % 2);
    }
  }

  // Copies each second column to another phase, the first of them to the second one if it is odd.
  void Part(const float* from, ptrdiff_t count, float* to, ptrdiff_t odd) const {
    if (odd != 0) to[phase] = *from++, to++, count--;
    const ptrdiff_t pairs = count / 2;
    if (count % 2 != 0) to[pairs] = from[2 * pairs];
    if (pairs >= 8) return PartBy<Eight>(from, pairs, to);
    if (pairs >= 4) return PartBy<Four>(from, pairs, to);
    for (ptrdiff_t i = 0; i < pairs; i++) to[i] = from[2 * i], to[phase + i] = from[2 * i + 1];
  }

  template <class V>
  void PartBy(const float* from, ptrdiff_t pairs, float* to) const {
    constexpr ptrdiff_t kPairs = sizeof(V) / sizeof(float);
    for (ptrdiff_t i = 0; i < pairs; i += kPairs) {
      const ptrdiff_t at = std::min(i, pairs - kPairs);
      const V first = Load<V>(from + 2 * at), second = Load<V>(from + 2 * at + kPairs);
      if constexpr (kPairs == 4) {
        Store(to + at, __builtin_shufflevector(first, second, 0, 2, 4, 6));
        Store(to + phase + at, __builtin_shufflevector(first, second, 1, 3, 5, 7));
      } else {
        Store(to + at, __builtin_shufflevector(first, second, 0, 2, 4, 6, 8, 10, 12, 14));
        Store(to + phase + at, __builtin_shufflevector(first, second, 1, 3, 5, 7, 9, 11, 13, 15));
      }
    }
  }

  // Stores sums of eight columns, side by side or one below the other; of rows there are `count`.
  template <int kSums>
  [[gnu::always_inline]] void Finish(Vector (&sums)[kSums][kVectors], float bias, float* output, ptrdiff_t apart,
                                     ptrdiff_t count) const {
    ORTRIM_UNROLLED (int i = 0; i < kSums * kVectors; i++) sums[0][i] += bias;
    if (bounded) ORTRIM_UNROLLED (int i = 0; i < kSums * kVectors; i++) sums[0][i] = Bounded(sums[0][i], low, high);
    if (columns >= kWide && count >= kSums) {
      ORTRIM_UNROLLED (int i = 0; i < kSums; i++)
        ORTRIM_UNROLLED (int v = 0; v < kVectors; v++) Store(output + i * apart + v * kLanes, sums[i][v]);
    } else {
      float all[kSums * kWide];
      std::memcpy(all, sums, sizeof(all));
      StoreSome(all, output, apart, std::min<ptrdiff_t>(count, kSums));
    }
  }

  [[gnu::noinline]] void StoreSome(const float* sums, float* output, ptrdiff_t apart, ptrdiff_t count) const {
    for (; count != 0; count--, sums += kWide, output += apart)
      std::memcpy(output, sums, std::min(columns, kWide) * sizeof(float));
  }

  // Computes a part by a kernel of three or five places along both axes.
  template <int kPlaces, int kStride>
  void Square(const float* copy, const float* filter, float bias, float* output) const {
    constexpr int kHigh = High(kPlaces, kStride), kWeights = (kPlaces * kPlaces + 3) / 4;
    Four weights[kWeights] = {};
    std::memcpy(weights, filter, kPlaces * kPlaces * sizeof(float));
    const ptrdiff_t last_row = std::max(rows - kHigh, ptrdiff_t{0}), last_column = std::max(columns - kWide, ptrdiff_t{0});
    const ptrdiff_t all = columns, step = pitch, odd = phase;
    for (ptrdiff_t i = 0; i < rows; i += kHigh) {
      const ptrdiff_t row = std::min(i, last_row);
      const float* line_of_copy = copy + row * kStride * pitch;
      float* line_of_output = output + row * x.output;
      for (ptrdiff_t j = 0; j < all; j += kWide) {
        const ptrdiff_t column = std::min(j, last_column);
        const float* from = line_of_copy + column;
        Vector sums[kHigh][kVectors] = {};
        ORTRIM_UNROLLED (int place = 0; place < (kHigh - 1) * kStride + kPlaces; place++, from += step) {
          // Loads of a row wait for the one before: clang loads all rows ahead, for which there are no registers.
          ORTRIM_UNROLLED (int i = 0; i < kHigh * kVectors; i++) asm("" : "+r"(from), ORTRIM_REGISTER(sums[0][i]));
          ORTRIM_UNROLLED (int k = 0; k < kPlaces; k++) {
            ORTRIM_UNROLLED (int v = 0; v < kVectors; v++) {
              const Vector inputs = Load<Vector>(from + k / kStride + (k % kStride) * odd + v * kLanes);
              ORTRIM_UNROLLED (int high = 0; high < kHigh; high++) {
                const int line = place - high * kStride, weight = line * kPlaces + k;
                if (line >= 0 && line < kPlaces) sums[high][v] += inputs * weights[weight / 4][weight % 4];
              }
            }
          }
        }
        Finish(sums, bias, line_of_output + column, x.output, rows);
      }
    }
  }

  // Computes as many columns of a row as there are sums, by a kernel of one row.
  template <int kSums>
  void Some(const float* from, const float* filter, float bias, float* output) const {
    Vector sums[kSums][kVectors] = {};
    for (ptrdiff_t k = 0, place = 0; k < x.kernel; k++, place += x.dilation) {
      const float* inputs = from + (x.stride == 1 ? place : place / 2 + place % 2 * phase);
      ORTRIM_UNROLLED (int i = 0; i < kSums * kVectors; i++)
        sums[0][i] += Load<Vector>(inputs + i * kLanes) * filter[k];
    }
    Finish(sums, bias, output, kWide, kSums);
  }

  void Line(const float* copy, const float* filter, float bias, float* output) const {
    constexpr ptrdiff_t kSums = 4;
    for (ptrdiff_t row = 0; row < rows; row++, copy += y.stride * pitch, output += x.output) {
      ptrdiff_t column = 0;
      for (; column + kSums * kWide <= columns; column += kSums * kWide)
        Some<kSums>(copy + column, filter, bias, output + column);
      for (; column < columns; column += kWide) {
        const ptrdiff_t last = std::max(std::min(column, columns - kWide), ptrdiff_t{0});
        Some<1>(copy + last, filter, bias, output + last);
      }
    }
  }

  // Computes some slices of all images' channels; channels with the same slice are neighbours.
  void Run(const float* input, const float* filter, const float* bias, float* output, ptrdiff_t begin, ptrdiff_t end) const {
    const auto part = !square ? &Plan::Line
                      : x.kernel == 3 ? (x.stride == 1 ? &Plan::Square<3, 1> : &Plan::Square<3, 2>)
                                      : (x.stride == 1 ? &Plan::Square<5, 1> : &Plan::Square<5, 2>);
    float copy[kRoom];
    const ptrdiff_t channels = of.BatchCount * of.GroupCount, sizes[] = {rows, columns};
    for (ptrdiff_t slice = begin / channels; begin < end; slice++) {
      const ptrdiff_t channel = begin % channels, until = std::min(channel + end - begin, channels);
      ptrdiff_t first[] = {0, 0}, last[] = {y.output, x.output};
      const int axis = y.output == 1;
      first[axis] = slice * sizes[axis];
      if (slice + 1 < slices) last[axis] = first[axis] + sizes[axis];
      for (ptrdiff_t i = first[0]; i < last[0]; i += rows) {
        for (ptrdiff_t j = first[1]; j < last[1]; j += columns) {
          const ptrdiff_t top = std::min(i, y.output - rows), left = std::min(j, x.output - columns);
          std::memset(copy, 0, copied * sizeof(float));
          for (ptrdiff_t c = channel; c < until; c++) {
            const size_t group = c % of.GroupCount;
            Copy(input + c * of.InputSize, top, left, copy);
            (this->*part)(copy, filter + group * of.K, bias == nullptr ? 0 : bias[group],
                          output + c * of.OutputSize + top * x.output + left);
          }
        }
      }
      float* sums = output + channel * of.OutputSize + first[0] * x.output + first[1];
      const size_t count = (last[0] - first[0]) * (last[1] - first[1]);
      if (!bounded) MlasActivation(of.Activation, sums, nullptr, until - channel, count, of.OutputSize);
      begin += until - channel;
    }
  }
};

#if defined(__x86_64__)
#pragma clang attribute pop
#endif

inline bool HasVectors() {
#if defined(__x86_64__)
  static const bool has = WidestVector() >= kWide;
  return has;
#else
  return true;
#endif
}

// As MlasConv.
inline void Convolve(const MLAS_CONV_PARAMETERS* of, const float* input, const float* filter, const float* bias,
                     float* working, float* output, onnxruntime::concurrency::ThreadPool* threads) {
  if (of->Dimensions == 2 && HasVectors()) {
    const Plan plan(*of);
    if (plan.Fits()) {
      onnxruntime::concurrency::ThreadPool::TryParallelFor(
          threads, of->BatchCount * of->GroupCount * plan.slices, double(of->OutputSize) * of->K / 8 / plan.slices,
          [&](ptrdiff_t begin, ptrdiff_t end) { plan.Run(input, filter, bias, output, begin, end); });
      return;
    }
  }
  MlasConv(of, input, filter, bias, working, output, threads);
}

}  // namespace ortrim::depthwise

#undef ORTRIM_REGISTER
#undef ORTRIM_UNROLLED

#ifndef BUILD_MLAS_NO_ONNXRUNTIME
#define MlasConv(...) ortrim::depthwise::Convolve(__VA_ARGS__)
#endif

#endif
