// A step's product for one_row_lstm.h and one_row_gru.h.
#pragma once

#include "core/providers/cpu/rnn/rnn_helpers.h"
#include "core/session/onnxruntime_c_api.h"

#if ORT_API_VERSION >= 25  // What takes threads takes next how MLAS chooses a kernel.
#define ORTRIM_SELECTOR(...) , __VA_ARGS__
#else
#define ORTRIM_SELECTOR(...)
#endif

namespace ortrim {

bool AddProduct(const float* row, const void* weights, float* output, size_t depth, size_t columns);  // of one_row.h

// Adds the product of a row with a model's weights.
inline void AddRow(const float* row, const onnxruntime::rnn::detail::GemmWeights<float>& weights, float* output, int depth,
                   int columns, onnxruntime::concurrency::ThreadPool* threads
                       ORTRIM_SELECTOR(const MLAS_BACKEND_KERNEL_SELECTOR_CONFIG* selector)) {
  if (weights.is_prepacked_ && AddProduct(row, weights.buffer_, output, depth, columns)) return;
  onnxruntime::rnn::detail::ComputeGemm(1, columns, depth, 1.0f, gsl::span<const float>(row, depth), weights, 1.0f,
                                        gsl::span<float>(output, columns), columns, nullptr, nullptr,
                                        threads ORTRIM_SELECTOR(selector));
}

}  // namespace ortrim
