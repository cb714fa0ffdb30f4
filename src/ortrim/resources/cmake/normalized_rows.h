// Normalizes rows by vectors, for layer_norm_rows.h and skip_layer_norm_rows.h. Upstream's loops (1.21.0 to 1.30-dev) add
// one value at a time, and divide each. The variance is that of the differences from the mean: where the mean is
// large, the squares' mean without it, as 1.21.0 has it, loses most of its bits.
#pragma once

#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#define ORTRIM_NORMALIZES

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "widest_vector.h"

namespace ortrim {

#if defined(__x86_64__)
inline const bool has_avx2 = WidestVector() != 0;
#else
constexpr bool has_avx2 = true;  // or what is as good
#endif

namespace norm {

#if defined(__x86_64__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
using Vector = float __attribute__((vector_size(32)));
#else
using Vector = float __attribute__((vector_size(16)));
#endif

template <class Values>
[[gnu::always_inline]] inline Values Load(Values, const float* from) {
  Values values;
  std::memcpy(&values, from, sizeof(values));
  return values;
}
template <class Values>
[[gnu::always_inline]] inline void Store(Values values, float* to) {
  std::memcpy(to, &values, sizeof(values));
}

// Calls a function for each place with the kind of values that begin there, vectors or the last floats, and one of four
// numbers, of which neighbours have different ones.
template <class Function>
[[gnu::always_inline]] inline void Walk(ptrdiff_t count, Function each) {
  constexpr ptrdiff_t kLanes = sizeof(Vector) / sizeof(float), kSums = 4;
  ptrdiff_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
#pragma clang loop unroll(full)
    for (int sum = 0; sum < kSums; sum++) each(Vector{}, i + sum * kLanes, sum);
  }
  for (; i + kLanes <= count; i += kLanes) each(Vector{}, i, 0);
  for (; i < count; i++) each(0.0f, i, 0);
}

// Adds up what a function adds to a sum at each place.
template <class Function>
[[gnu::always_inline]] inline float Sum(ptrdiff_t count, Function add) {
  Vector sums[4] = {};
  float last = 0;
  Walk(count, [&](auto kind, ptrdiff_t i, int sum) {
    if constexpr (std::is_same_v<decltype(kind), float>)
      add(kind, i, last);
    else
      add(kind, i, sums[sum]);
  });
  const Vector all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
#if defined(__x86_64__)
  const auto four = __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
#else
  const auto four = all;
#endif
  const auto two = four + __builtin_shufflevector(four, four, 2, 3, 0, 1);
  return last + (two[0] + two[1]);
}

struct Norm {
  const float* scale;
  const float* bias;  // or none
  ptrdiff_t count;
  float epsilon;
  bool simplified;  // by the root of the mean square

  struct Found {
    float mean, factor;
  };

  // Normalizes a row; returns its mean, and what the differences from it were multiplied by.
  Found Run(const float* input, float* output) const {
    const float sum = simplified ? 0 : Sum(count, [&](auto kind, ptrdiff_t i, auto& all) { all += Load(kind, input + i); });
    return Finish(input, sum, output);
  }

  // Normalizes the sums of two rows, and of `more` unless that is none; stores the sums, too, where there is room for them.
  void RunOnSums(const float* input, const float* skip, const float* more, float* output, float* sums) const {
    const float sum = Sum(count, [&](auto kind, ptrdiff_t i, auto& all) {
      auto values = Load(kind, input + i) + Load(kind, skip + i);
      if (more != nullptr) values += Load(kind, more + i);
      if (sums != nullptr) Store(values, sums + i);
      Store(values, output + i);
      all += values;
    });
    Finish(output, simplified ? 0 : sum, output);
  }

 private:
  Found Finish(const float* input, float sum, float* output) const {
    const float size = static_cast<float>(count), mean = sum / size, shift = -mean;
    const float squares = Sum(count, [&](auto kind, ptrdiff_t i, auto& all) {
      const auto difference = Load(kind, input + i) + shift;
      all += difference * difference;
    });
    const float factor = 1 / std::sqrt(squares / size + epsilon);
    const float *scales = scale, *biases = bias;  // which a store might change, as far as the compiler sees
    if (biases == nullptr) {
      Walk(count, [&](auto kind, ptrdiff_t i, int) {
        Store((Load(kind, input + i) + shift) * factor * Load(kind, scales + i), output + i);
      });
    } else {
      Walk(count, [&](auto kind, ptrdiff_t i, int) {
        Store((Load(kind, input + i) + shift) * factor * Load(kind, scales + i) + Load(kind, biases + i), output + i);
      });
    }
    return {mean, factor};
  }
};

#if defined(__x86_64__)
#pragma clang attribute pop
#endif

}  // namespace norm
}  // namespace ortrim

#endif
