#include "core/framework/op_kernel.h"

namespace onnxruntime {

class kCpuExecutionProvider_Add_kOnnxDomain_ver14_float;
class kCpuExecutionProvider_Gemm_kOnnxDomain_ver13_float;

int run_kernels(int value) {
  value = BuildKernelCreateInfo<kCpuExecutionProvider_Add_kOnnxDomain_ver14_float>().run(value);
  value = BuildKernelCreateInfo<kCpuExecutionProvider_Gemm_kOnnxDomain_ver13_float>().run(value);
  return value;
}

}  // namespace onnxruntime
