#include "core/framework/op_kernel.h"
#include "core/providers/op_kernel_type_control.h"

namespace onnxruntime {

class kCpuExecutionProvider_Gemm_kOnnxDomain_ver13_float;

static int run(int value) { return sgemm(value) + ORT_OP_KERNEL_ARG_LENGTH(Gemm); }

template <>
KernelCreateInfo BuildKernelCreateInfo<kCpuExecutionProvider_Gemm_kOnnxDomain_ver13_float>() {
  return {run};
}

}  // namespace onnxruntime
