// A GRU over one sequence, as one_row_lstm.h is an LSTM. Included ahead of deep_cpu_gru.cc: float32 takes this Compute in
// place of the class template's own, which all else is left to. Upstream's computes the gates with the vectors of the
// least processor, and turns sequences round twice; here biases are what products are added to, and two gates are one row.
#pragma once

#include "core/providers/cpu/rnn/deep_cpu_gru.h"

#if defined(__clang__)

#include <algorithm>
#include <limits>

#include "core/mlas/inc/mlas.h"
#include "one_row_product.h"

namespace onnxruntime {
namespace detail {

template <>
inline void UniDirectionalGru<float>::Compute(gsl::span<const float> inputs, gsl::span<const int> lengths, int directions,
                                              const rnn::detail::GemmWeights<float>& input_weights,
                                              const rnn::detail::GemmWeights<float>& gate_weights,
                                              const rnn::detail::GemmWeights<float>& fresh_weights,
                                              gsl::span<float>& outputs, gsl::span<float>& last_hidden) {
  namespace deepcpu = rnn::detail::deepcpu;
  if (batch_size_ != 1 || clip_ != std::numeric_limits<float>::max() ||
      update_gate_ != deepcpu::ActivationFuncByName("sigmoid") ||
      output_gate_ != deepcpu::GruOutputGateFuncByName("tanh"))
    return ComputeImpl(inputs, lengths, directions, input_weights, gate_weights, fresh_weights, outputs, last_hidden,
                       outputZRH_);

  const int size = hidden_size_, row = 3 * size, length = lengths.empty() ? seq_length_ : lengths[0];
  float* const gates = outputZRH_.data();  // of each step: update, reset, and what is fresh
  for (int step = 0; step < length && use_bias_; step++) {
    float* const of_step = gates + step * row;
    std::copy_n(batched_bias_WRz_.data(), size, of_step);
    std::copy_n(batched_bias_WRr_.data(), size, of_step + size);
    std::copy_n((linear_before_reset_ ? batched_bias_Wh_ : batched_bias_WRh_).data(), size, of_step + 2 * size);
  }
  ComputeGemm(length, row, input_size_, 1.0f, inputs, input_weights, use_bias_ ? 1.0f : 0.0f, outputZRH_, row, nullptr,
              nullptr, ttp_ ORTRIM_SELECTOR(mlas_backend_kernel_selector_config_));

  const auto add = [&](const float* values, const auto& weights, float* sums, int columns) {
    ortrim::AddRow(values, weights, sums, size, columns, ttp_ ORTRIM_SELECTOR(mlas_backend_kernel_selector_config_));
  };
  const float* before = batched_hidden0_.data();
  for (int each = 0; each < length; each++) {
    const int step = direction_ == rnn::detail::kReverse ? length - 1 - each : each;
    float *const update = gates + step * row, *const reset = update + size, *const fresh = reset + size;
    float* const output = outputs.empty() ? last_hidden.data() : outputs.data() + step * directions * size;
    add(before, gate_weights, update, 2 * size);
    MlasComputeLogistic(update, update, 2 * size);
    if (linear_before_reset_) {
      float* const linear = linear_output_.data();
      if (use_bias_)
        std::copy_n(batched_bias_Rh_.data(), size, linear);
      else
        std::fill_n(linear, size, 0.0f);
      add(before, fresh_weights, linear, size);
      for (int i = 0; i < size; i++) fresh[i] += reset[i] * linear[i];
    } else {
      for (int i = 0; i < size; i++) reset[i] *= before[i];
      add(reset, fresh_weights, fresh, size);
    }
    MlasComputeTanh(fresh, fresh, size);
    for (int i = 0; i < size; i++) output[i] = fresh[i] + update[i] * (before[i] - fresh[i]);
    before = output;
  }
  if (outputs.empty()) return;
  std::copy_n(before, size, last_hidden.data());
  for (int step = length; step < seq_length_; step++) std::fill_n(outputs.data() + step * directions * size, size, 0.0f);
}

}  // namespace detail
}  // namespace onnxruntime

#endif
