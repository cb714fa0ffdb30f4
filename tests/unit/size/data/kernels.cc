#include <cstddef>
namespace onnxruntime {
struct KernelCreateInfo { int number; };
class kCpuExecutionProvider_Relu_kOnnxDomain_ver14_float;
class kCpuExecutionProvider_Add_kOnnxDomain_ver14_float;
class kCpuExecutionProvider_Mul_kOnnxDomain_ver14_float;
template <typename T> KernelCreateInfo BuildKernelCreateInfo();
extern volatile int registered;
template <typename T> struct Add { float Compute(const T* x, std::size_t n) const; };
template <typename T> struct Mul { float Compute(const T* x, std::size_t n) const; };
template <typename T> float Add<T>::Compute(const T* x, std::size_t n) const { float s = 0; for (std::size_t i = 0; i < n; ++i) s += x[i]; return s; }
template <typename T> float Mul<T>::Compute(const T* x, std::size_t n) const { float s = 1; for (std::size_t i = 0; i < n; ++i) s *= x[i]; return s; }
template struct Add<float>;
template struct Mul<float>;
int shared_by_both(int x) { return registered * x + 3; }
#ifdef TWO
template <> KernelCreateInfo BuildKernelCreateInfo<kCpuExecutionProvider_Add_kOnnxDomain_ver14_float>() { return {registered + 1}; }
template <> KernelCreateInfo BuildKernelCreateInfo<kCpuExecutionProvider_Mul_kOnnxDomain_ver14_float>() { return {registered + 1}; }
#endif
}
