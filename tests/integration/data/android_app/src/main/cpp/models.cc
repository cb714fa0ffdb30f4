// Runs the cases of a request through the C++ API, with the model mapped from where it lies in a file.

#include <jni.h>
#include <onnxruntime_cxx_api.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

class Mapping {
 public:
  Mapping(int file, off_t offset, size_t length)
      : before_(offset % sysconf(_SC_PAGESIZE)),
        size_(before_ + length),
        start_(mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, offset - static_cast<off_t>(before_))) {
    if (start_ == MAP_FAILED) throw std::runtime_error("the model cannot be mapped");
  }
  ~Mapping() { munmap(start_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const void* data() const { return static_cast<const char*>(start_) + before_; }

 private:
  size_t before_, size_;
  void* start_;
};

template <typename T = int64_t>
T next(std::istream& request) {
  T word{};
  if (!(request >> word)) throw std::runtime_error("the request ends too early");
  return word;
}

Ort::SessionOptions read_options(std::istream& request) {
  Ort::SessionOptions options;
  options.SetGraphOptimizationLevel(static_cast<GraphOptimizationLevel>(next(request)));
  options.SetExecutionMode(static_cast<ExecutionMode>(next(request)));
  options.SetIntraOpNumThreads(static_cast<int>(next(request)));
  options.SetInterOpNumThreads(static_cast<int>(next(request)));
  if (next(request) == 0) options.DisableCpuMemArena();
  if (next(request) == 0) options.DisableMemPattern();
  for (auto entries = next(request); entries > 0; --entries) {
    const auto key = next<std::string>(request), value = next<std::string>(request);
    options.AddConfigEntry(key.c_str(), value.c_str());
  }
  return options;
}

struct Tensor {
  std::vector<int64_t> shape;
  std::string bytes;
};

Tensor read_tensor(std::istream& request) {
  Tensor tensor;
  for (auto rank = next(request); rank > 0; --rank) tensor.shape.push_back(next(request));
  tensor.bytes.resize(next<size_t>(request));
  request.get();
  request.read(&tensor.bytes[0], static_cast<std::streamsize>(tensor.bytes.size()));
  return tensor;
}

size_t size_of(ONNXTensorElementDataType type) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
      return 1;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
      return 2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
      return 4;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
      return 8;
    default:
      throw std::runtime_error("an output has elements of type " + std::to_string(type));
  }
}

void write_tensor(std::ostream& results, const Ort::Value& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  const auto shape = info.GetShape();
  const auto bytes = info.GetElementCount() * size_of(info.GetElementType());
  results << shape.size();
  for (const auto size : shape) results << ' ' << size;
  results << ' ' << bytes << '\n';
  results.write(static_cast<const char*>(value.GetTensorRawData()), static_cast<std::streamsize>(bytes));
}

void run_case(Ort::Session& session, std::istream& request, std::ostream& results) {
  Ort::AllocatorWithDefaultOptions allocator;
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<Ort::AllocatedStringPtr> owned;
  std::vector<const char*> inputs, outputs;
  std::vector<Tensor> tensors(session.GetInputCount());
  std::vector<Ort::Value> values;
  for (size_t n = 0; n < tensors.size(); ++n) {
    auto& [shape, bytes] = tensors[n] = read_tensor(request);
    const auto type = session.GetInputTypeInfo(n).GetTensorTypeAndShapeInfo().GetElementType();
    values.push_back(Ort::Value::CreateTensor(memory, &bytes[0], bytes.size(), shape.data(), shape.size(), type));
    inputs.push_back(owned.emplace_back(session.GetInputNameAllocated(n, allocator)).get());
  }
  for (size_t n = 0; n < session.GetOutputCount(); ++n) {
    outputs.push_back(owned.emplace_back(session.GetOutputNameAllocated(n, allocator)).get());
  }
  const auto found =
      session.Run(Ort::RunOptions(), inputs.data(), values.data(), values.size(), outputs.data(), outputs.size());
  for (const auto& value : found) write_tensor(results, value);
}

std::string run(int file, off_t offset, size_t length, const std::string& asked) {
  std::istringstream request(asked);
  std::ostringstream results;
  const Mapping model(file, offset, length);
  Ort::Env environment(ORT_LOGGING_LEVEL_WARNING, "models");
  Ort::Session session(environment, model.data(), length, read_options(request));
  for (auto cases = next(request); cases > 0; --cases) run_case(session, request, results);
  return results.str();
}

}  // namespace

extern "C" JNIEXPORT jbyteArray JNICALL Java_ortrim_app_RunModels_runInCpp(
    JNIEnv* java, jclass, jint file, jlong offset, jlong length, jbyteArray request) {
  try {
    std::string asked(static_cast<size_t>(java->GetArrayLength(request)), '\0');
    java->GetByteArrayRegion(request, 0, static_cast<jsize>(asked.size()), reinterpret_cast<jbyte*>(&asked[0]));
    const auto found = run(file, static_cast<off_t>(offset), static_cast<size_t>(length), asked);
    const auto results = java->NewByteArray(static_cast<jsize>(found.size()));
    if (results != nullptr) {
      java->SetByteArrayRegion(
          results, 0, static_cast<jsize>(found.size()), reinterpret_cast<const jbyte*>(found.data()));
    }
    return results;
  } catch (const std::exception& error) {
    java->ThrowNew(java->FindClass("java/lang/IllegalStateException"), error.what());
    return nullptr;
  }
}
