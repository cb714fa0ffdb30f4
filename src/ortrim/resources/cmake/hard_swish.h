// Hard-swish behind a convolution in NCHWc layout: x * HardSigmoid(x), two operators that each pass over the whole tensor.
// The convolution computes both right behind its sums, by the processor's widest vectors; the two nodes, which stay in the
// model, pass on what it has made. Included ahead of the sources of all three; each of them asks the same of the graph.
// Outputs are the same to the last bit on x64. A product may now take the place of its first factor, so that nothing is
// copied. Behind winograd_filters.h, whose convolution it takes.
#pragma once

#include <algorithm>
#include <cstring>

#include "core/common/cpuid_info.h"
#include "core/framework/op_kernel.h"
#include "core/graph/graph.h"
#include "core/mlas/inc/mlas.h"
#include "core/platform/threadpool.h"
#include "core/providers/cpu/activation/activations.h"
#include "core/providers/cpu/math/element_wise_ops.h"

#if defined(__x86_64__) && defined(__clang__)
#include <immintrin.h>
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

inline bool Is(const Node& node, const char* name, const char* domain = "") {
  return node.OpType() == name && node.Domain() == domain;
}

// The HardSigmoid behind a convolution, if that and the product of both are all that reads what the convolution makes.
inline const Node* GateBehind(const Node& convolution) {
  if (!Is(convolution, "Conv", "com.microsoft.nchwc") || convolution.GetOutputEdgesCount() != 2) return nullptr;
  auto reader = convolution.OutputEdgesBegin();
  const Node *gate = &reader->GetNode(), *product = &(++reader)->GetNode();
  if (Is(*gate, "Mul")) std::swap(gate, product);
  if (!Is(*gate, "HardSigmoid") || !Is(*product, "Mul")) return nullptr;
  if (gate->GetOutputEdgesCount() != 1 || &gate->OutputEdgesBegin()->GetNode() != product) return nullptr;
  for (const Node* each : {gate, product})
    if (each->GetExecutionProviderType() != convolution.GetExecutionProviderType()) return nullptr;
  const auto& graph = GraphOf(convolution);
  return graph.NodeProducesGraphOutput(convolution) || graph.NodeProducesGraphOutput(*gate) ? nullptr : gate;
}

// Which of a product's inputs is hard-swish already; -1 if none.
inline int FinishedInput(const Node& product) {
  if (product.GetInputEdgesCount() == 2)
    for (auto edge = product.InputEdgesBegin(); edge != product.InputEdgesEnd(); ++edge)
      if (GateBehind(edge->GetNode()) != nullptr) return edge->GetDstArgIndex();
  return -1;
}

struct HardSwish {
  float slope, offset;

  // The operations of HardSigmoid and of Mul, one by one.
  void Plain(float* values, ptrdiff_t count) const {
    for (ptrdiff_t i = 0; i < count; i++) {
      const float scaled = values[i] * slope;
      values[i] *= std::max(std::min(scaled + offset, 1.0f), 0.0f);
    }
  }

#if defined(__x86_64__) && defined(__clang__)
  [[gnu::target("avx2")]] void Eight(float* values, ptrdiff_t count) const {
    const __m256 a = _mm256_set1_ps(slope), b = _mm256_set1_ps(offset), one = _mm256_set1_ps(1);
    ptrdiff_t i = 0;
    for (; i + 8 <= count; i += 8) {
      const __m256 x = _mm256_loadu_ps(values + i);
      const __m256 gate = _mm256_min_ps(_mm256_add_ps(_mm256_mul_ps(x, a), b), one);
      _mm256_storeu_ps(values + i, _mm256_mul_ps(x, _mm256_max_ps(gate, _mm256_setzero_ps())));
    }
    Plain(values + i, count - i);
  }

  [[gnu::target("avx512f")]] void Sixteen(float* values, ptrdiff_t count) const {
    const __m512 a = _mm512_set1_ps(slope), b = _mm512_set1_ps(offset), one = _mm512_set1_ps(1);
    ptrdiff_t i = 0;
    for (; i + 16 <= count; i += 16) {
      const __m512 x = _mm512_loadu_ps(values + i);
      const __m512 gate = _mm512_min_ps(_mm512_add_ps(_mm512_mul_ps(x, a), b), one);
      _mm512_storeu_ps(values + i, _mm512_mul_ps(x, _mm512_max_ps(gate, _mm512_setzero_ps())));
    }
    Plain(values + i, count - i);
  }
#endif

  void operator()(float* values, ptrdiff_t count) const {
#if defined(__x86_64__) && defined(__clang__)
    const auto& processor = onnxruntime::CPUIDInfo::GetCPUIDInfo();
    if (processor.HasAVX512f()) return Sixteen(values, count);
    if (processor.HasAVX2()) return Eight(values, count);
#endif
    Plain(values, count);
  }
};

// Makes hard-swish of what a convolution has made, where that is what follows.
inline void FinishHardSwish(const onnxruntime::OpKernel& convolution, onnxruntime::OpKernelContext& context,
                            onnxruntime::Tensor& made) {
  const auto* gate = GateBehind(convolution.Node());
  if (gate == nullptr) return;
  onnxruntime::functors::HardSigmoid<float> of;
  if (!of.Init(gate->GetAttributes()).IsOK()) return;  // Its kernel cannot have been made
  float* const values = made.MutableData<float>();
  const auto run = [=, swish = HardSwish{of.alpha, of.beta}](ptrdiff_t first, ptrdiff_t last) {
    swish(values + first, last - first);
  };
  onnxruntime::concurrency::ThreadPool::TryParallelFor(context.GetOperatorThreadPool(), made.Shape().Size(),
                                                       {sizeof(float), sizeof(float), 0.5}, run);
}

}  // namespace ortrim

namespace onnxruntime {

template <>
inline Status ElementWiseKernel<functors::HardSigmoid<float>>::Compute(OpKernelContext* context) const {
  const Tensor& input = *context->Input<Tensor>(0);
  Tensor& output = *context->Output(0, input.Shape());
  const auto& node = Node();
  if (node.GetInputEdgesCount() == 1 && ortrim::GateBehind(node.InputEdgesBegin()->GetNode()) == &node)
    return Status::OK();
  auto of = f_;
  of.input = input.Data<float>();
  of.output = output.MutableData<float>();
  concurrency::ThreadPool::TryParallelFor(context->GetOperatorThreadPool(), input.Shape().Size(),
                                          {sizeof(float), sizeof(float), of.Cost()}, of);
  return Status::OK();
}

template <>
inline Status Mul<float>::Compute(OpKernelContext* context) const {
  const int finished = ortrim::FinishedInput(Node());
  if (finished >= 0) {
    const Tensor& input = *context->Input<Tensor>(finished);
    Tensor& output = *context->Output(0, input.Shape());
    if (output.DataRaw() != input.DataRaw()) std::memcpy(output.MutableDataRaw(), input.DataRaw(), input.SizeInBytes());
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

namespace ortrim {

// The input in whose place an operator may write its output, with all else that upstream lets it; -1 for none more.
inline int InPlaceOf(const char* name) { return std::strcmp(name, "Mul") == 0 ? 0 : -1; }

}  // namespace ortrim

#define SetName(name) SetName(name).MayInplace(::ortrim::InPlaceOf(name), 0)

#ifndef ORTRIM_CONVOLVE
#define ORTRIM_CONVOLVE MlasNchwcConv
#endif
#undef MlasNchwcConv
#define MlasNchwcConv(...) (ORTRIM_CONVOLVE(__VA_ARGS__), ::ortrim::FinishHardSwish(*this, *context, *Y))
