#include "core/framework/op_kernel.h"
#include "core/providers/op_kernel_type_control.h"

namespace onnxruntime {

class kCpuExecutionProvider_Add_kOnnxDomain_ver14_float;

static int run(int value) { return value + ORT_OP_KERNEL_ARG_LENGTH(Add); }

template <>
KernelCreateInfo BuildKernelCreateInfo<kCpuExecutionProvider_Add_kOnnxDomain_ver14_float>() {
  return {run};
}

}  // namespace onnxruntime
