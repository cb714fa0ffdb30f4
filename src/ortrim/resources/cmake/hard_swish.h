// Hard-swish as x * HardSigmoid(x), two operators that each pass over the whole tensor. The product makes one pass for both,
// by the processor's widest vectors; the HardSigmoid, which stays in the model, makes none. Included ahead of the sources of
// both, each of which asks the same of the graph. Outputs are the same to the last bit on x64. A product may take the place
// of its first factor, which upstream's never does.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/framework/op_kernel.h"
#include "core/graph/graph.h"
#include "core/platform/threadpool.h"
#include "core/providers/cpu/activation/activations.h"
#include "core/providers/cpu/math/element_wise_ops.h"

#if defined(__x86_64__) && defined(__clang__)
#define ORTRIM_WIDE
#include <immintrin.h>

#include "widest_vector.h"
#endif

namespace ortrim {

using onnxruntime::Node;

// The graph that a node is in, which Node has a method for from 1.25 on.
template <auto Member>
struct Reach {
  friend const onnxruntime::Graph& GraphOf(const Node& node) { return *(node.*Member); }
};
template struct Reach<&Node::graph_>;
const onnxruntime::Graph& GraphOf(const Node& node);

// The HardSigmoid of a product with what that is of, if nothing else reads it.
inline const Node* GateOf(const Node& product) {
  if (product.OpType() != "Mul" || !product.Domain().empty()) return nullptr;
  for (auto edge = product.InputEdgesBegin(); edge != product.InputEdgesEnd(); ++edge) {
    const Node& gate = edge->GetNode();
    if (gate.OpType() == "HardSigmoid" && gate.Domain().empty() && gate.GetOutputEdgesCount() == 1 &&
        gate.GetExecutionProviderType() == product.GetExecutionProviderType() &&
        product.InputDefs()[1 - edge->GetDstArgIndex()] == gate.InputDefs()[0] &&
        !GraphOf(gate).NodeProducesGraphOutput(gate))
      return &gate;
  }
  return nullptr;
}

struct HardSwish {
  float slope, offset;

  // The operations of HardSigmoid and of Mul, one by one. What is read and written is the same or apart.
  void Four(const float* from, float* to, ptrdiff_t count) const {
    using Vector = float __attribute__((vector_size(16)));
    const Vector zero{}, one = zero + 1;
    ptrdiff_t i = 0;
    for (; i + 4 <= count; i += 4) {
      Vector x;
      std::memcpy(&x, from + i, sizeof(x));
      const Vector scaled = x * slope;
      Vector gate = scaled + offset;
      gate = gate < one ? gate : one;
      x *= gate > zero ? gate : zero;
      std::memcpy(to + i, &x, sizeof(x));
    }
    for (; i < count; i++) {
      const float scaled = from[i] * slope;
      to[i] = from[i] * std::max(std::min(scaled + offset, 1.0f), 0.0f);
    }
  }

#ifdef ORTRIM_WIDE
  [[gnu::target("avx2")]] void Eight(const float* from, float* to, ptrdiff_t count) const {
    const __m256 a = _mm256_set1_ps(slope), b = _mm256_set1_ps(offset), one = _mm256_set1_ps(1);
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m256 x = _mm256_loadu_ps(from + i);
      const __m256 gate = _mm256_min_ps(_mm256_add_ps(_mm256_mul_ps(x, a), b), one);
      _mm256_storeu_ps(to + i, _mm256_mul_ps(x, _mm256_max_ps(gate, _mm256_setzero_ps())));
    }
    Four(from + i, to + i, count - i);
  }

  [[gnu::target("avx512f")]] void Sixteen(const float* from, float* to, ptrdiff_t count) const {
    const __m512 a = _mm512_set1_ps(slope), b = _mm512_set1_ps(offset), one = _mm512_set1_ps(1);
    ptrdiff_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const __m512 x = _mm512_loadu_ps(from + i);
      const __m512 gate = _mm512_min_ps(_mm512_add_ps(_mm512_mul_ps(x, a), b), one);
      _mm512_storeu_ps(to + i, _mm512_mul_ps(x, _mm512_max_ps(gate, _mm512_setzero_ps())));
    }
    Four(from + i, to + i, count - i);
  }
#endif

  void operator()(const float* from, float* to, ptrdiff_t count) const {
#ifdef ORTRIM_WIDE
    static const int width = WidestVector();  // upstream's CPUIDInfo asks for a leaf of CPUID without naming its part
    if (width == 16) return Sixteen(from, to, count);
    if (width == 8) return Eight(from, to, count);
#endif
    Four(from, to, count);
  }
};

// The input in whose place an operator may write its output, with all else that upstream lets it; -1 for none more.
inline int InPlaceOf(const char* name) { return std::strcmp(name, "Mul") == 0 ? 0 : -1; }

}  // namespace ortrim

namespace onnxruntime {

template <>
inline Status ElementWiseKernel<functors::HardSigmoid<float>>::Compute(OpKernelContext* context) const {
  const Tensor& input = *context->Input<Tensor>(0);
  Tensor& output = *context->Output(0, input.Shape());
  const auto& node = Node();
  if (node.GetOutputEdgesCount() == 1 && ortrim::GateOf(node.OutputEdgesBegin()->GetNode()) == &node) return Status::OK();
  auto of = f_;
  of.input = input.Data<float>();
  of.output = output.MutableData<float>();
  concurrency::ThreadPool::TryParallelFor(context->GetOperatorThreadPool(), input.Shape().Size(),
                                          {sizeof(float), sizeof(float), of.Cost()}, of);
  return Status::OK();
}

template <>
inline Status Mul<float>::Compute(OpKernelContext* context) const {
  if (const auto* gate = ortrim::GateOf(Node())) {
    functors::HardSigmoid<float> of;
    ORT_RETURN_IF_ERROR(of.Init(gate->GetAttributes()));
    const Tensor& input = *context->Input<Tensor>(Node().InputDefs()[0] == gate->InputDefs()[0] ? 0 : 1);
    Tensor& output = *context->Output(0, input.Shape());
    const auto run = [from = input.Data<float>(), to = output.MutableData<float>(),
                      swish = ortrim::HardSwish{of.alpha, of.beta}](ptrdiff_t first, ptrdiff_t last) {
      swish(from + first, to + first, last - first);
    };
    concurrency::ThreadPool::TryParallelFor(context->GetOperatorThreadPool(), input.Shape().Size(),
                                            {sizeof(float), sizeof(float), of.Cost()}, run);
    return Status::OK();
  }
  const ProcessBroadcastSpanFuncs funcs{
      [](BroadcastHelper& of) { of.OutputEigen<float>() = of.ScalarInput0<float>() * of.EigenInput1<float>().array(); },
      [](BroadcastHelper& of) { of.OutputEigen<float>() = of.EigenInput0<float>().array() * of.ScalarInput1<float>(); },
      [](BroadcastHelper& of) {
        of.OutputEigen<float>() = of.EigenInput0<float>().cwiseProduct(of.EigenInput1<float>());
      }};
  UntypedBroadcastTwo(*context, funcs, 1.0);
  return Status::OK();
}

}  // namespace onnxruntime

#define SetName(name) SetName(name).MayInplace(::ortrim::InPlaceOf(name), 0)
