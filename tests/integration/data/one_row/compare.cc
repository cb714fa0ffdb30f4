// Runs the product of one row, and the LSTM and the GRU of one sequence, on random numbers, and compares what they write with what
// float64 has, and each product with MLAS's own kernel's, to the last bit. Prints how many were compared; or the first that
// differs.
#include "one_row_gru.h"
#include "one_row_lstm.h"
#undef UniDirectionalLstm

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "mlasi.h"

namespace onnxruntime {
int left_to_upstream = 0;
}

namespace {

using namespace onnxruntime::lstm;
using onnxruntime::left_to_upstream;

std::mt19937 numbers(20261129);
int one_rows = 0;  // how often MLAS's kernel was asked for one row

int Some(int least, int most) { return least + static_cast<int>(numbers() % (most - least + 1)); }

std::vector<float> Values(size_t count, float most = 1) {
  std::uniform_real_distribution<float> range(-most, most);
  std::vector<float> values(count);
  for (auto& value : values) value = range(numbers);
  return values;
}

#if defined(MLAS_TARGET_ARM64)
size_t OneRow(const float* a, const float* b, float* c, size_t depth, size_t rows, size_t columns, size_t lda, size_t ldc,
              float alpha, bool zero) {
  return (zero ? MlasSgemmKernelZero : MlasSgemmKernelAdd)(a, b, c, depth, rows, columns, lda, ldc, alpha);
}
#else
// In the order of MLAS's kernel for AVX2, on one row; each column's products are added up one after another.
size_t MLASCALL OneRow(const float* a, const float* b, float* c, size_t depth, size_t, size_t columns, size_t, size_t,
                       float alpha, bool zero) {
  for (size_t column = 0; column < columns; column++) {
    float sum = 0;
    const float* panel = b + column / 16 * 16 * depth + column % 16;
    for (size_t k = 0; k < depth; k++) sum = std::fma(a[k], panel[16 * k], sum);
    c[column] = std::fma(sum, alpha, zero ? 0.0f : c[column]);
  }
  return 1;
}

// What stands in the table.
size_t MLASCALL Kernel(const float* a, const float* b, float* c, size_t depth, size_t rows, size_t columns, size_t lda,
                       size_t ldc, float alpha, bool zero) {
  one_rows += rows == 1;
  return OneRow(a, b, c, depth, rows, columns, lda, ldc, alpha, zero);
}
#endif

// Weights as a model has them, of which each row is a column of the matrix, and packed or not.
struct Weights {
  std::vector<float> values, packed;
  size_t columns, depth;
  bool is_packed;

  Weights(size_t columns, size_t depth, bool is_packed)
      : values(Values(columns * depth, 0.3f)), columns(columns), depth(depth), is_packed(is_packed) {
    packed.resize(MlasGemmPackBSize(columns, depth) / sizeof(float));
    MlasGemmPackB(CblasTrans, columns, depth, values.data(), depth, packed.data());
  }
  GemmWeights<float> Given() const { return {is_packed, is_packed ? packed.data() : values.data()}; }
  double Product(const float* row, size_t column) const {
    double sum = 0;
    for (size_t k = 0; k < depth; k++) sum += double(row[k]) * values[column * depth + k];
    return sum;
  }
};

bool SameProduct(int number) {
  const size_t depth = Some(1, Some(1, 4) == 1 ? 600 : 80), columns = Some(1, Some(1, 4) == 1 ? 300 : 90), rows = Some(1, 9);
  const Weights weights(columns, depth, true);
  const float alpha = Some(0, 1) ? 1.0f : 0.75f, beta = Some(0, 2) * 0.5f;
  const auto row = Values(rows * depth), before = Values(rows * columns);
  auto output = before;
  if (beta == 0) output.assign(rows * columns, std::numeric_limits<float>::quiet_NaN());
  MlasGemm(CblasNoTrans, rows, columns, depth, alpha, row.data(), depth, weights.packed.data(), beta, output.data(),
           columns, nullptr);
  auto other = beta == 0 ? output : before;
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < depth; k += 256) {
      const size_t aligned = (columns + 15) / 16 * 16, some = std::min<size_t>(256, depth - k);
      for (size_t j = 0; j < columns && k == 0 && beta != 0 && beta != 1; j++) other[i * columns + j] *= beta;
      OneRow(row.data() + i * depth + k, weights.packed.data() + aligned * k, other.data() + i * columns, some, 1, columns,
             depth, columns, alpha, beta == 0 && k == 0);
    }
  for (size_t i = 0; i < output.size(); i++) {
    if (output[i] == other[i]) continue;
    std::printf("product %d, %d by %d, value %d: %.9g, and %.9g by MLAS's kernel\n", number, int(depth), int(columns), int(i),
                output[i], other[i]);
    return false;
  }
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      const float value = output[i * columns + j];
      const double right = alpha * weights.Product(row.data() + i * depth, j) + beta * before[i * columns + j];
      if (std::fabs(value - right) <= 1e-6 * (depth + 1)) continue;
      std::printf("product %d, %d by %d, column %d: %.9g instead of %.9g\n", number, int(depth), int(columns), int(j), value,
                  right);
      return false;
    }
  return true;
}

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Whether outputs after the end are zero, and those of the other direction were not written.
bool RestIsRight(const std::vector<float>& output, int steps, int length, int directions, int size) {
  for (int step = length; step < steps; step++)
    for (int i = 0; i < size; i++)
      if (output[step * directions * size + i] != 0) return std::puts("an output after the end is not zero") < 0;
  for (int step = 0; step + 1 < steps; step++)
    for (int i = size; i < directions * size; i++)
      if (!std::isnan(output[step * directions * size + i])) return std::puts("the other direction is written to") < 0;
  return true;
}

bool SameLstm(int number) {
  const int steps = Some(1, 12), length = Some(0, 2) ? steps : Some(1, steps), depth = Some(1, 40), directions = Some(1, 2);
  const int size = Some(0, 5) ? Some(1, 70) : Some(120, 280), row = 4 * size;
  const bool reverse = Some(0, 1), biased = Some(0, 1), begun = Some(0, 1), sequence = Some(0, 2), packed = Some(0, 3);
  const Weights from_input(row, depth, packed), from_hidden(row, size, packed);
  const auto input = Values(steps * depth), bias = Values(2 * row), hidden = Values(size), cell = Values(size);
  const float unset = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> output(sequence ? (steps - 1) * directions * size + size : 0, unset), last(size, unset), state(size, unset);

  const onnxruntime::logging::Logger logger;
  const ActivationFuncs::Entry sigmoid{"sigmoid", 0, 0}, tanh{"tanh", 0, 0};
  const auto span = [](const std::vector<float>& values, bool given) {
    return gsl::span<const float>(values.data(), given ? values.size() : 0);
  };
  const gsl::span<const float> no_peepholes;
  onnxruntime::concurrency::ThreadPool* const no_threads = nullptr;
  OneRowLstm<float> lstm(onnxruntime::AllocatorPtr(), logger, steps, 1, depth, size, reverse ? kReverse : kForward, false,
                         span(bias, biased), no_peepholes, span(hidden, begun), span(cell, begun), sigmoid, tanh, tanh,
                         std::numeric_limits<float>::max(), no_threads);
  gsl::span<float> outputs(output.data(), output.size()), last_hidden(last.data(), size), last_cell(state.data(), size);
  const gsl::span<const int> lengths(&length, length == steps ? 0 : 1);
  lstm.Compute(span(input, true), lengths, directions, from_input.Given(), from_hidden.Given(), outputs, last_hidden,
               last_cell);

  // Each step begins with what was written, so that errors of steps before it count once.
  const auto differs = [&](const char* what, int step, float value, double right) {
    if (std::fabs(value - right) <= 1e-5 * (1 + std::fabs(right))) return false;
    std::printf("LSTM %d, %s of step %d: %.9g instead of %.9g\n", number, what, step, value, right);
    return true;
  };
  std::vector<double> exact(begun ? size : 0), before(begun ? size : 0), now(size);
  for (int i = 0; begun && i < size; i++) exact[i] = cell[i], before[i] = hidden[i];
  exact.resize(size), before.resize(size);
  for (int each = 0; each < length; each++) {
    const int step = reverse ? length - 1 - each : each;
    for (int i = 0; i < size; i++) {
      double gates[4];
      for (int gate = 0; gate < 4; gate++) {
        const int column = gate * size + i;
        double sum = from_input.Product(input.data() + step * depth, column);
        for (int k = 0; k < size; k++) sum += before[k] * from_hidden.values[size_t(column) * size + k];
        gates[gate] = biased ? sum + bias[column] + bias[row + column] : sum;
      }
      exact[i] = exact[i] * Logistic(gates[2]) + Logistic(gates[0]) * std::tanh(gates[3]);
      now[i] = Logistic(gates[1]) * std::tanh(exact[i]);
      if (sequence && differs("output", step, output[step * directions * size + i], now[i])) return false;
    }
    before = now;
  }
  for (int i = 0; i < size; i++)
    if (differs("last output", length, last[i], before[i]) || differs("cell", length, state[i], exact[i])) return false;
  return !sequence || RestIsRight(output, steps, length, directions, size);
}

bool SameGru(int number) {
  const int steps = Some(1, 12), length = Some(0, 2) ? steps : Some(1, steps), depth = Some(1, 40), directions = Some(1, 2);
  const int size = Some(0, 5) ? Some(1, 70) : Some(120, 280), row = 3 * size;
  const bool reverse = Some(0, 1), biased = Some(0, 1), begun = Some(0, 1), sequence = Some(0, 2), packed = Some(0, 3);
  const bool linear = Some(0, 1);
  const Weights from_input(row, depth, packed), to_gates(2 * size, size, packed), to_fresh(size, size, packed);
  const auto input = Values(steps * depth), bias = Values(2 * row), hidden = Values(size);
  const float unset = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> output(sequence ? (steps - 1) * directions * size + size : 0, unset), last(size, unset);

  const auto span = [](const std::vector<float>& values, bool given) {
    return gsl::span<const float>(values.data(), given ? values.size() : 0);
  };
  onnxruntime::detail::UniDirectionalGru<float> gru(steps, 1, depth, size, linear, reverse ? kReverse : kForward,
                                                    span(bias, biased), span(hidden, begun), "sigmoid", "tanh",
                                                    std::numeric_limits<float>::max());
  gsl::span<float> outputs(output.data(), output.size()), last_hidden(last.data(), size);
  const gsl::span<const int> lengths(&length, length == steps ? 0 : 1);
  gru.Compute(span(input, true), lengths, directions, from_input.Given(), to_gates.Given(), to_fresh.Given(), outputs,
              last_hidden);

  const auto differs = [&](const char* what, int step, float value, double right) {
    if (std::fabs(value - right) <= 1e-5) return false;
    std::printf("GRU %d, %s of step %d: %.9g instead of %.9g\n", number, what, step, value, right);
    return true;
  };
  std::vector<float> before(size);
  std::vector<double> now(size);
  if (begun) before = hidden;
  for (int each = 0; each < length; each++) {
    const int step = reverse ? length - 1 - each : each;
    std::vector<float> kept(size);
    const auto gate = [&](int which, int i) {
      const int column = which * size + i;
      return from_input.Product(input.data() + step * depth, column) + (biased ? bias[column] : 0);
    };
    const auto from_before = [&](int which, int i) { return biased ? bias[row + which * size + i] : 0.0; };
    for (int i = 0; i < size; i++)
      kept[i] = Logistic(gate(1, i) + to_gates.Product(before.data(), size + i) + from_before(1, i)) * (linear ? 1 : before[i]);
    for (int i = 0; i < size; i++) {
      const double update = Logistic(gate(0, i) + to_gates.Product(before.data(), i) + from_before(0, i));
      const double rest = linear ? kept[i] * (to_fresh.Product(before.data(), i) + from_before(2, i))
                                 : to_fresh.Product(kept.data(), i) + from_before(2, i);
      now[i] = (1 - update) * std::tanh(gate(2, i) + rest) + update * before[i];
      if (sequence && differs("output", step, output[step * directions * size + i], now[i])) return false;
    }
    before.assign(now.begin(), now.end());
  }
  for (int i = 0; i < size; i++)
    if (differs("last output", length, last[i], now[i])) return false;
  return !sequence || RestIsRight(output, steps, length, directions, size);
}

bool LeavesOtherGrus() {
  const std::vector<float> some(64);
  const gsl::span<const float> none, given(some.data(), some.size());
  gsl::span<float> no_output;
  const gsl::span<const int> no_lengths;
  const GemmWeights<float> weights{false, some.data()};
  const auto left = [&](int sequences, const char* gates, const char* fresh, float clip) {
    const int before = left_to_upstream;
    onnxruntime::detail::UniDirectionalGru<float>(1, sequences, 1, 1, true, kForward, none, none, gates, fresh, clip)
        .Compute(given, no_lengths, 1, weights, weights, weights, no_output, no_output);
    return left_to_upstream == before + 1;
  };
  const float most = std::numeric_limits<float>::max();
  return left(2, "sigmoid", "tanh", most) && left(1, "relu", "tanh", most) && left(1, "sigmoid", "relu", most) &&
         left(1, "sigmoid", "tanh", 3);
}

// What is not float32 of one sequence of some steps with the operator's own activations is upstream's.
bool LeavesTheRest() {
  const onnxruntime::logging::Logger logger;
  const ActivationFuncs::Entry sigmoid{"sigmoid", 0, 0}, tanh{"tanh", 0, 0}, relu{"relu", 0, 0};
  const std::vector<float> some(64);
  const gsl::span<const float> none, given(some.data(), some.size());
  gsl::span<float> no_output;
  const gsl::span<const int> no_lengths;
  onnxruntime::concurrency::ThreadPool* const no_threads = nullptr;
  const GemmWeights<float> weights{false, some.data()};
  const auto left = [&](int sequences, bool coupled, auto peepholes, const auto& f, const auto& g, const auto& h, float clip,
                        int steps = 1) {
    const int before = left_to_upstream;
    OneRowLstm<float>(onnxruntime::AllocatorPtr(), logger, steps, sequences, 1, 1, kForward, coupled, none, peepholes, none, none,
                      f, g, h, clip, no_threads)
        .Compute(given, no_lengths, 1, weights, weights, no_output, no_output, no_output);
    return left_to_upstream == before + 1;
  };
  const float most = std::numeric_limits<float>::max();
  return left(2, false, none, sigmoid, tanh, tanh, most) && left(1, true, none, sigmoid, tanh, tanh, most) &&
         left(1, false, given, sigmoid, tanh, tanh, most) && left(1, false, none, relu, tanh, tanh, most) &&
         left(1, false, none, sigmoid, relu, tanh, most) && left(1, false, none, sigmoid, tanh, relu, most) &&
         left(1, false, none, sigmoid, tanh, tanh, 3) && left(1, false, none, sigmoid, tanh, tanh, most, 0);
}

}  // namespace

// MLAS's table and functions, as far as these products and steps go.
MLAS_PLATFORM::MLAS_PLATFORM() {
#if defined(MLAS_TARGET_AMD64)
  MaximumThreadCount = 1;
  GemmFloatKernel = Kernel;
  KernelM1Routine = KernelM1TransposeBRoutine = nullptr;
  TransposePackB16x4Routine = [](float* to, const float* from, size_t apart) {
    for (size_t i = 0; i < 64; i++) to[i] = from[i % 16 * apart + i / 16];
  };
#endif
}
#if defined(MLAS_TARGET_AMD64)
struct MLAS_GEMM_QUANT_DISPATCH {};
extern const MLAS_GEMM_QUANT_DISPATCH MlasGemmQuantDispatchDefault{};
#endif
size_t MLASCALL MlasGetPreferredBufferAlignment() { return 64; }
void MLASCALL MlasComputeLogistic(const float* from, float* to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = static_cast<float>(Logistic(from[i]));
}
template <>
void MLASCALL MlasComputeTanh<float>(const float* from, float* to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = std::tanh(from[i]);
}
void MlasTrySimpleParallel(MLAS_THREADPOOL*, const ptrdiff_t count, const std::function<void(ptrdiff_t)>& work) {
  for (ptrdiff_t i = 0; i < count; i++) work(i);
}

int main(int, char** words) {
  const int wanted = std::atoi(words[1]);
  for (int number = 0; number < wanted; number++)
    if (!SameProduct(number) || !SameLstm(number) || !SameGru(number)) return 1;
  if (!LeavesTheRest() || !LeavesOtherGrus()) return std::puts("one of another kind is not left to upstream"), 1;
  std::printf("%d are right, %d of one row were left to MLAS\n", wanted, one_rows);
}
