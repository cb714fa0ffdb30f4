namespace onnxruntime {
struct KernelCreateInfo { int number; };
class kCpuExecutionProvider_Relu_kOnnxDomain_ver14_float;
template <typename T> KernelCreateInfo BuildKernelCreateInfo();
volatile int registered = 7;
template <> KernelCreateInfo BuildKernelCreateInfo<kCpuExecutionProvider_Relu_kOnnxDomain_ver14_float>() { return {registered + 2}; }
static float clipped(float x) { return x > 0 ? x : 0; }
float relu(const float* x, int n) { float s = 0; for (int i = 0; i < n; ++i) s += clipped(x[i]); return s; }
}
