// Stands in for ONNX Runtime's LSTM: a class that is left all that one_row_lstm.h does not take.
#pragma once
#include "core/providers/cpu/rnn/rnn_helpers.h"

namespace onnxruntime {

namespace lstm {

using namespace rnn::detail;

template <typename T>
struct UniDirectionalLstm {
  template <class... Arguments>
  explicit UniDirectionalLstm(const Arguments&...) {}
  template <class... Arguments>
  void Compute(const Arguments&...) {
    ++left_to_upstream;
  }
};

}  // namespace lstm
}  // namespace onnxruntime
