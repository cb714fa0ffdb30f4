// Stands in for ONNX Runtime's GRU: what its constructor leaves, and a function that is left all the rest.
#pragma once
#include <algorithm>
#include <vector>

#include "core/providers/cpu/rnn/rnn_helpers.h"

namespace onnxruntime::detail {

template <typename T>
class UniDirectionalGru {
  using Values = gsl::span<const T>;
  using Weights = rnn::detail::GemmWeights<T>;

 public:
  UniDirectionalGru(int steps, int sequences, int depth, int size, bool linear, rnn::detail::Direction direction, Values bias,
                    Values hidden, const std::string& gates, const std::string& fresh, float clip)
      : seq_length_(steps), batch_size_(sequences), input_size_(depth), hidden_size_(size), linear_before_reset_(linear),
        clip_(clip), direction_(direction), use_bias_(!bias.empty()),
        update_gate_(rnn::detail::deepcpu::ActivationFuncByName(gates)),
        output_gate_(rnn::detail::deepcpu::GruOutputGateFuncByName(fresh)) {
    const auto make = [this](gsl::span<T>& span, size_t count, T value) {
      owned_.emplace_back(count, value);
      span = {owned_.back().data(), count};
    };
    make(outputZRH_, size_t(steps) * 3 * size, T{}), make(batched_hidden0_, size, T{}), make(linear_output_, size, T(9));
    for (int i = 0; i < size && !hidden.empty(); i++) batched_hidden0_[i] = hidden[i];
    for (auto* span : {&batched_bias_WRz_, &batched_bias_WRr_, &batched_bias_Wh_, &batched_bias_Rh_, &batched_bias_WRh_})
      if (use_bias_) make(*span, size, T{});
    for (int i = 0; i < size && use_bias_; i++) {
      batched_bias_WRz_[i] = bias[i] + bias[3 * size + i], batched_bias_WRr_[i] = bias[size + i] + bias[4 * size + i];
      batched_bias_Wh_[i] = bias[2 * size + i], batched_bias_Rh_[i] = bias[5 * size + i];
      batched_bias_WRh_[i] = bias[2 * size + i] + bias[5 * size + i];
    }
  }

  void Compute(Values inputs, gsl::span<const int> lengths, int directions, const Weights& input_weights,
               const Weights& gate_weights, const Weights& fresh_weights, gsl::span<T>& outputs, gsl::span<T>& last_hidden);

 private:
  template <class... Arguments>
  void ComputeImpl(const Arguments&...) {
    ++left_to_upstream;
  }

  std::vector<std::vector<T>> owned_;
  int seq_length_, batch_size_, input_size_, hidden_size_;
  bool linear_before_reset_;
  const float clip_;
  rnn::detail::Direction direction_;
  bool use_bias_;
  gsl::span<T> outputZRH_, batched_hidden0_, linear_output_;
  gsl::span<T> batched_bias_WRz_, batched_bias_WRr_, batched_bias_Wh_, batched_bias_Rh_, batched_bias_WRh_;
  rnn::detail::deepcpu::ActivationFuncPtr update_gate_;
  rnn::detail::deepcpu::GruOutputGateFuncPtr output_gate_;
  concurrency::ThreadPool* ttp_ = nullptr;
};

}  // namespace onnxruntime::detail
