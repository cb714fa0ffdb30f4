#include "core/framework/op_kernel.h"

extern "C" int OrtGetApiBase(int value) { return onnxruntime::run_kernels(allocate(value)); }
