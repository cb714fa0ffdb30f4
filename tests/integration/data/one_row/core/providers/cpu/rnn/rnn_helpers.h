// Stands in for what ONNX Runtime's LSTM and GRU share: what one_row_lstm.h and one_row_gru.h take of it.
#pragma once
#include <cstdlib>
#include <memory>
#include <string>

#include "core/mlas/inc/mlas.h"

template <>
void MLASCALL MlasComputeTanh<float>(const float* from, float* to, size_t count);

namespace gsl {

template <typename T>
struct span {
  T* first = nullptr;
  size_t count = 0;
  span() = default;
  span(T* data, size_t size) : first(data), count(size) {}
  template <typename U>
  span(const span<U>& other) : first(other.first), count(other.count) {}
  T* data() const { return first; }
  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T& operator[](size_t i) const { return i < count ? first[i] : (std::abort(), *first); }
};

}  // namespace gsl

namespace onnxruntime {

extern int left_to_upstream;

using AllocatorPtr = std::shared_ptr<int>;
template <typename T>
using IAllocatorUniquePtr = std::unique_ptr<T[]>;

namespace logging {
class Logger {};
}  // namespace logging

namespace concurrency {
class ThreadPool;
}  // namespace concurrency

namespace rnn::detail {

enum Direction { kForward, kReverse, kBidirectional };

namespace deepcpu {

using ActivationFuncPtr = void (*)(float*, int, float, float);
using GruOutputGateFuncPtr = void (*)(float*, const float*, const float*, float*, int, float, float);

inline ActivationFuncPtr ActivationFuncByName(const std::string& name) {
  if (name == "sigmoid") return [](float*, int, float, float) { std::abort(); };
  return [](float*, int, float, float) { std::exit(2); };
}
inline GruOutputGateFuncPtr GruOutputGateFuncByName(const std::string& name) {
  if (name == "tanh") return [](float*, const float*, const float*, float*, int, float, float) { std::abort(); };
  return [](float*, const float*, const float*, float*, int, float, float) { std::exit(2); };
}

}  // namespace deepcpu

struct ActivationFuncs {
  struct Entry {
    const std::string name;
    const float alpha, beta;
  };
};

template <typename T>
struct GemmWeights {
  bool is_prepacked_;
  const void* buffer_;
};

template <typename T>
gsl::span<T> Allocate(const AllocatorPtr&, size_t size, IAllocatorUniquePtr<T>& owner) {
  owner = std::make_unique<T[]>(size);
  return {owner.get(), size};
}

inline void ComputeGemm(int rows, int columns, int depth, float alpha, gsl::span<const float> from,
                        const GemmWeights<float>& weights, float beta, gsl::span<float> to, int apart, uint8_t*, int32_t*,
                        concurrency::ThreadPool* threads) {
  if (from.size() < size_t(rows) * depth || to.size() < size_t(rows) * columns) std::abort();
  if (weights.is_prepacked_)
    MlasGemm(CblasNoTrans, rows, columns, depth, alpha, from.data(), depth, weights.buffer_, beta, to.data(), apart,
             threads);
  else
    MlasGemm(CblasNoTrans, CblasTrans, rows, columns, depth, alpha, from.data(), depth,
             static_cast<const float*>(weights.buffer_), depth, beta, to.data(), apart, threads);
}

}  // namespace rnn::detail

}  // namespace onnxruntime
