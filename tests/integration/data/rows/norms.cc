// Compares layer_norm_rows.h and skip_layer_norm_rows.h with float64, and on what is no number with upstream's own, which
// the test cuts out of layer_norm_impl.cc and skip_layer_norm.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "layer_norm_rows.h"
#include "skip_layer_norm_rows.h"

#define ORT_UNUSED_PARAMETER(name) (void)(name)
#define LAYER_NORM_SCALE_BIAS_OFFSET(broadcast_param, x_row, norm_size) \
  ((broadcast_param == 0) ? 0                                           \
                          : norm_size * (broadcast_param > 0 ? x_row / broadcast_param : x_row % (-broadcast_param)))

namespace gsl {
template <class To, class From>
To narrow_cast(From from) {
  return static_cast<To>(from);
}
}  // namespace gsl

using Values = std::vector<float>;

// A normalization: of sums where there is a row to skip.
struct Case {
  ptrdiff_t rows, size, skips;
  int64_t broadcast;
  float epsilon;
  bool simplified, has_bias, has_more, wants_sums, wants_found;
  Values input, skip, more, scale, bias;
};

struct Made {
  Values output, sums, mean, factor;
};

template <class T>
T* OrNone(std::vector<T>& values, bool wanted) {
  return wanted ? values.data() : nullptr;
}
const float* OrNone(const Values& values, bool wanted) { return wanted ? values.data() : nullptr; }

namespace onnxruntime {
namespace {
#include "layer_norm_of_upstream.inc"
}  // namespace

template <class Kind>
Made Normalize(const Case& of) {
  const size_t all = of.rows * of.size;
  Made made{Values(all), {}, Values(of.rows), Values(of.rows)};
  const AllocatorPtr alloc;
  for (ptrdiff_t row = 0; row < of.rows; row++) {
    const auto compute = [&](auto function) {
      function(of.input.data(), of.scale.data(), OrNone(of.bias, of.has_bias), row, int64_t{of.size}, of.broadcast,
               static_cast<const float*>(nullptr), static_cast<const float*>(nullptr), of.epsilon, of.simplified,
               made.output.data(), OrNone(made.mean, of.wants_found && !of.simplified),
               OrNone(made.factor, of.wants_found), alloc);
    };
    if constexpr (std::is_same_v<Kind, float>)
      compute([](auto... all) { ComputeJob(all...); });
    else
      compute([](auto... all) { ComputeJob<float, float, void>(all...); });
  }
  return made;
}

namespace contrib {
namespace {
#include "skip_layer_norm_of_upstream.inc"
}  // namespace

template <class Kind>
Made NormalizeSums(const Case& of) {
  const size_t all = of.rows * of.size;
  Made made{Values(all), Values(all), {}, {}};
  for (ptrdiff_t row = 0; row < of.rows; row++) {
    const auto compute = [&](auto function) {
      function(of.input.data(), of.skip.data(), of.scale.data(), OrNone(of.bias, of.has_bias),
               OrNone(of.more, of.has_more), row, static_cast<int>(of.size), int64_t{of.skips * of.size}, of.epsilon,
               of.simplified, made.output.data(), OrNone(made.sums, of.wants_sums));
    };
    if constexpr (std::is_same_v<Kind, float>)
      compute([](auto... all) { ComputeJob(all...); });
    else
      compute([](auto... all) { ComputeJob<float, void>(all...); });
  }
  return made;
}

}  // namespace contrib
}  // namespace onnxruntime

template <class Kind>
Made Run(const Case& of) {
  return of.skips == 0 ? onnxruntime::Normalize<Kind>(of) : onnxruntime::contrib::NormalizeSums<Kind>(of);
}

std::mt19937 random_numbers(7);

int Between(int low, int high) { return low + static_cast<int>(random_numbers() % (high - low + 1)); }

Values Some(ptrdiff_t count, float middle, float spread) {
  std::normal_distribution<float> normal(middle, spread);
  Values values(count);
  for (float& each : values) each = normal(random_numbers);
  return values;
}

// Whether a value is right up to what the sums of a row's floats are rounded to.
bool Near(const char* what, double found, double expected, double allowed) {
  if (std::abs(found - expected) <= allowed) return true;
  std::printf("%s: %.9g in place of %.9g, %g allowed\n", what, found, expected, allowed);
  return false;
}

bool Right(const Case& of) {
  const Made made = Run<float>(of);
  for (ptrdiff_t row = 0; row < of.rows; row++) {
    std::vector<double> values(of.size);
    double sum = 0, squares = 0, largest = 0;
    for (ptrdiff_t i = 0; i < of.size; i++) {
      const ptrdiff_t at = row * of.size + i;
      values[i] = of.input[at];
      if (of.skips != 0) {
        float added = of.input[at] + of.skip[at % (of.skips * of.size)];
        if (of.has_more) added += of.more[i];
        values[i] = added;
        if (!Near("sum", made.sums[at], of.wants_sums ? added : 0, 0)) return false;
      }
      sum += values[i];
      largest = std::max(largest, std::abs(values[i]));
    }
    const double mean = of.simplified ? 0 : sum / of.size;
    for (const double each : values) squares += (each - mean) * (each - mean);
    const double factor = 1 / std::sqrt(squares / of.size + of.epsilon), allowed = 3e-6 * (1 + largest * factor);
    const int64_t set = of.broadcast == 0 ? 0 : of.broadcast > 0 ? row / of.broadcast : row % -of.broadcast;
    for (ptrdiff_t i = 0; i < of.size; i++) {
      const double scale = of.scale[set * of.size + i], bias = of.has_bias ? of.bias[set * of.size + i] : 0;
      const double expected = (values[i] - mean) * factor * scale + bias;
      if (!Near("output", made.output[row * of.size + i], expected, allowed * (std::abs(scale) + std::abs(bias))))
        return false;
    }
    if (of.skips != 0) continue;
    const bool means = of.wants_found && !of.simplified;
    if (!Near("mean", made.mean[row], means ? mean : 0, means * 1e-6 * largest)) return false;
    if (!Near("factor", made.factor[row], of.wants_found ? factor : 0, of.wants_found * 3e-6 * factor)) return false;
  }
  return true;
}

// Whether what is no number, or infinite, makes the same outputs no numbers as in upstream's.
bool Refused(Case of) {
  const float numbers[] = {NAN, INFINITY, -INFINITY};
  for (float* each = of.input.data(); each < of.input.data() + of.input.size(); each += Between(1, 2 * of.size))
    *each = numbers[Between(0, 2)];
  const Made made = Run<float>(of), expected = Run<void>(of);
  for (size_t i = 0; i < made.output.size(); i++) {
    const float found = made.output[i], wanted = expected.output[i];
    if (std::isnan(found) != std::isnan(wanted) || std::isinf(found) != std::isinf(wanted)) {
      std::printf("%g in place of %g\n", found, wanted);
      return false;
    }
  }
  return true;
}

Case Next() {
  Case of{};
  of.rows = Between(1, 6), of.size = Between(0, 2) == 0 ? 32 * Between(1, 12) : Between(2, 150);
  of.simplified = Between(0, 2) == 0, of.has_bias = !of.simplified && Between(0, 1) == 0, of.has_more = Between(0, 1) == 0;
  of.wants_sums = Between(0, 1) == 0, of.wants_found = Between(0, 1) == 0;
  const float epsilons[] = {1e-5f, 1e-12f, 0.1f}, spreads[] = {1e-3f, 1, 300}, middles[] = {0, 1, 30};
  of.epsilon = epsilons[Between(0, 2)];
  const float spread = spreads[Between(0, 2)], middle = spread * middles[Between(0, 2)];
  int64_t sets = 1;
  if (Between(0, 1) == 0) {
    of.skips = Between(0, 1) == 0 ? of.rows : 1;
  } else if (Between(0, 1) == 0) {
    of.broadcast = Between(1, 3) * (Between(0, 1) == 0 ? 1 : -1);
    sets = of.broadcast > 0 ? of.rows : -of.broadcast;
  }
  of.input = Some(of.rows * of.size, middle, spread);
  of.skip = Some(of.skips * of.size, 0, spread);
  of.more = Some(of.size, 0, spread);
  of.scale = Some(sets * of.size, 1, 1);
  of.bias = Some(sets * of.size, 0, 1);
  return of;
}

bool Same(const Values& found, const Values& expected) {
  return found.size() == expected.size() && std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0;
}

bool Same(const Case& of) {
  const Made made = Run<float>(of), expected = Run<void>(of);
  return Same(made.output, expected.output) && Same(made.sums, expected.sums) && Same(made.mean, expected.mean) &&
         Same(made.factor, expected.factor);
}

// With a second word all is to be upstream's.
int main(int words, char** word) {
  const int count = std::atoi(word[1]);
  for (int i = 0; i < count; i++) {
    const Case of = Next();
    if (words > 2 ? Same(of) : Right(of) && Refused(of)) continue;
    std::printf("%zd x %zd, skips %zd, broadcast %d, epsilon %g, simplified %d\n", of.rows, of.size, of.skips,
                static_cast<int>(of.broadcast), of.epsilon, of.simplified);
    return 1;
  }
  std::printf("%d are right\n", count);
}
