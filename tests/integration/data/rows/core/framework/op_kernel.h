// Stands in for what byte_softmax.h takes of ONNX Runtime's kernels.
#pragma once

namespace onnxruntime {

namespace common {
struct Status {
  static Status OK() { return {}; }
};
}  // namespace common
using common::Status;

struct OpKernelInfo {};

class OpKernel {
 public:
  explicit OpKernel(const OpKernelInfo&) {}
};

}  // namespace onnxruntime
