// Stands in for ONNX Runtime's allocators, of which no row needs one.
#pragma once

namespace onnxruntime {

struct AllocatorPtr {};

}  // namespace onnxruntime
