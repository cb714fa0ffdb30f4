
#include <onnxruntime_cxx_api.h>
struct Kernel {
  Kernel(const OrtApi&, const OrtKernelInfo* info) : alpha(Ort::ConstKernelInfo{info}.GetAttribute<float>("alpha")) {}
  void Compute(OrtKernelContext* given) {
    Ort::KernelContext context(given);
    auto x = context.GetInput(0);
    auto y = context.GetOutput(0, x.GetTensorTypeAndShapeInfo().GetShape());
    y.GetTensorMutableData<float>()[0] = alpha * x.GetTensorData<float>()[0];
  }
  float alpha;
};
struct Operator : Ort::CustomOpBase<Operator, Kernel> {
  void* CreateKernel(const OrtApi& api, const OrtKernelInfo* info) const { return new Kernel(api, info); }
  const char* GetName() const { return "Scale"; }
  size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
};
int main() {
  Operator scale;
  Ort::CustomOpDomain domain("app");
  domain.Add(&scale);
  Ort::SessionOptions options;
  options.Add(domain);
  Ort::Env env;
  Ort::Session session(env, "model.onnx", options);
  Ort::IoBinding binding(session);
  binding.BindOutput("y", Ort::MemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault));
  session.Run(Ort::RunOptions{nullptr}, binding);
  for (auto& value : binding.GetOutputValues()) value.IsTensor();
}
