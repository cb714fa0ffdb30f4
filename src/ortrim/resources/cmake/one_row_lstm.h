// An LSTM over one sequence, as models have it that hear sound as it comes. Included ahead of lstm_base.cc, whose
// UniDirectionalLstm is this one: upstream's for all that is not float32 of one sequence with the operator's own
// activations. Upstream's allocates a dozen buffers, copies a sequence to turn it round, and computes each step's four
// gates by eleven functions; here biases are what products are added to, and three gates are one row.
#pragma once

#include "core/providers/cpu/rnn/uni_directional_lstm.h"

#if defined(__clang__)

#include <algorithm>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/mlas/inc/mlas.h"
#include "one_row_product.h"

namespace onnxruntime {
namespace lstm {

// Ends a step: its gates, which lie one after another (input, output, forget, cell), change the cell and give the output.
inline void MergeGates(const float* __restrict gates, float* __restrict cell, float* __restrict output, size_t size) {
  const float *out = gates + size, *forget = out + size, *fresh = forget + size;
  for (size_t i = 0; i < size; i++) cell[i] = cell[i] * forget[i] + gates[i] * fresh[i];
  MlasComputeTanh(cell, output, size);
  for (size_t i = 0; i < size; i++) output[i] *= out[i];
}

template <typename T>
class OneRowLstm {
  using Values = gsl::span<const T>;
  using Activation = ActivationFuncs::Entry;

 public:
  template <class... Arguments>
  explicit OneRowLstm(Arguments&&... arguments) : all_(std::forward<Arguments>(arguments)...) {}

  template <typename Weight>
  void Compute(const Values& inputs, const gsl::span<const int>& lengths, int directions,
               const GemmWeights<Weight>& input_weights, const GemmWeights<Weight>& recurrent_weights,
               gsl::span<T>& outputs, gsl::span<T>& last_hidden, gsl::span<T>& last_cell) {
    if constexpr (std::is_same_v<Weight, T>) {
      const auto& [allocator, logger, steps, sequences, depth, size, direction, coupled, bias, peepholes, hidden, cell,
                   of_gates, of_cell, of_output, clip, threads ORTRIM_SELECTOR(selector)] = all_;
      if (sequences == 1 && steps != 0 && !coupled && peepholes.empty() && clip == std::numeric_limits<float>::max() &&
          of_gates.name == "sigmoid" && of_cell.name == "tanh" && of_output.name == "tanh")
        return ComputeOne(inputs, lengths.empty() ? steps : lengths[0], directions, input_weights, recurrent_weights,
                          outputs, last_hidden.data(), last_cell.data());
    }
    std::make_from_tuple<UniDirectionalLstm<T>>(all_).Compute(inputs, lengths, directions, input_weights,
                                                              recurrent_weights, outputs, last_hidden, last_cell);
  }

 private:
  void ComputeOne(const Values& inputs, int length, int directions, const GemmWeights<T>& input_weights,
                  const GemmWeights<T>& recurrent_weights, gsl::span<T>& outputs, T* last_hidden, T* last_cell) {
    const auto& [allocator, logger, steps, sequences, depth, size, direction, coupled, bias, peepholes, hidden, cell,
                 of_gates, of_cell, of_output, clip, threads ORTRIM_SELECTOR(selector)] = all_;
    const int row = 4 * size;
    IAllocatorUniquePtr<T> owner;
    const gsl::span<T> gates = Allocate(allocator, size_t(length) * row, owner);
    for (int i = 0; i < row && !bias.empty(); i++) gates[i] = bias[i] + bias[i + row];
    for (int step = 1; step < length && !bias.empty(); step++) std::copy_n(gates.data(), row, gates.data() + step * row);
    ComputeGemm(length, row, depth, 1.0f, inputs, input_weights, bias.empty() ? 0.0f : 1.0f, gates, row, nullptr,
                nullptr, threads ORTRIM_SELECTOR(selector));

    Begin(hidden, last_hidden, size), Begin(cell, last_cell, size);
    const T* before = last_hidden;
    for (int each = 0; each < length; each++) {
      const int step = direction == kReverse ? length - 1 - each : each;
      T* of_step = gates.data() + step * row;
      T* output = outputs.empty() ? last_hidden : outputs.data() + step * directions * size;
      ortrim::AddRow(before, recurrent_weights, of_step, size, row, threads ORTRIM_SELECTOR(selector));
      MlasComputeLogistic(of_step, of_step, 3 * size);
      MlasComputeTanh(of_step + 3 * size, of_step + 3 * size, size);
      MergeGates(of_step, last_cell, output, size);
      before = output;
    }
    if (outputs.empty()) return;
    std::copy_n(before, size, last_hidden);
    for (int step = length; step < steps; step++) std::fill_n(outputs.data() + step * directions * size, size, T{});
  }

  static void Begin(const Values& given, T* state, int size) {
    if (given.empty())
      std::fill_n(state, size, T{});
    else
      std::copy_n(given.data(), size, state);
  }

  // What upstream's constructor takes, in its order.
  std::tuple<AllocatorPtr, const logging::Logger&, int, int, int, int, Direction, bool, Values, Values, Values, Values,
             const Activation&, const Activation&, const Activation&, float,
             concurrency::ThreadPool* ORTRIM_SELECTOR(const MLAS_BACKEND_KERNEL_SELECTOR_CONFIG*)>
      all_;
};

}  // namespace lstm
}  // namespace onnxruntime

#define UniDirectionalLstm OneRowLstm

#endif
