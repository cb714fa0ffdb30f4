#pragma once
#define PRECOMPILED_WITH_THIS 1

namespace onnxruntime {

struct KernelCreateInfo {
  int (*run)(int);
};

template <typename T>
KernelCreateInfo BuildKernelCreateInfo();

int run_kernels(int value);

}  // namespace onnxruntime

int log_value(int value);
int sgemm(int value);
int allocate(int value);
