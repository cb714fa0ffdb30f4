// Ahead of the XNNPACK provider's sources: leaves out kernels of operators that the models do not have, since upstream
// reduces the processor's own alone. xnnpack.cmake defines ORTRIM_XNNPACK_<operator> as 1 for one that stays, else as 0.
#pragma once

#include "core/framework/op_kernel.h"

#ifdef ORT_NO_EXCEPTIONS  // gsl's own, which upstream's sources name, is there with exceptions alone
#include "core/common/narrow.h"
namespace gsl {
using onnxruntime::narrow;
}
#endif

namespace onnxruntime::xnnpack {
class LeftOut;
template <typename T>
KernelCreateInfo BuildKernelCreateInfo();
template <>
inline KernelCreateInfo BuildKernelCreateInfo<LeftOut>() { return {}; }
}  // namespace onnxruntime::xnnpack

#define ORTRIM_PICK_0(name) LeftOut
#define ORTRIM_PICK_1(name) name
#define ORTRIM_PICKED(kept, name) ORTRIM_PICK_##kept(name)
#define ORTRIM_PICK(kept, name) ORTRIM_PICKED(kept, name)

#ifdef ORTRIM_XNNPACK_TABLE
#include "core/framework/node_unit.h"
#include "core/providers/xnnpack/detail/node_support_checker.h"

namespace onnxruntime::xnnpack {

// Leaves nodes to the CPU with which a model would not load:
// - what is made of several nodes, such as Conv and Relu: of a model in ORT format upstream's loader would have the
//   provider compile it (PartitionOrtFormatModelImpl), which this one refuses;
// - values of float16 and, where no model is quantized, of bytes: XNNPACK's operators for them are left out, see
//   xnnpack.cmake;
// - Gemm without C, whose shape upstream (1.21.0) asks for all the same.
class OwnSupportChecker : public NodeSupportChecker {
 public:
  using NodeSupportChecker::NodeSupportChecker;

  bool IsNodeSupported(const NodeUnit& unit) {
    if (unit.UnitType() != NodeUnit::Type::SingleNode || unit.Inputs().empty()) return false;
    if (unit.OpType() == "Gemm" && unit.Inputs().size() < 3) return false;
    const auto* type = unit.Inputs()[0].node_arg.TypeAsProto();
    const auto kind = type == nullptr ? 0 : type->tensor_type().elem_type();
    const bool bytes = kind == ONNX_NAMESPACE::TensorProto_DataType_UINT8 ||
                       kind == ONNX_NAMESPACE::TensorProto_DataType_INT8;
    return (kind == ONNX_NAMESPACE::TensorProto_DataType_FLOAT || (bytes && ORTRIM_XNNPACK_QLinearConv)) &&
           NodeSupportChecker::IsNodeSupported(unit);
  }

  const NodeUnit* IsNodeSupportedWithFusion(const NodeUnit&) { return nullptr; }
};

}  // namespace onnxruntime::xnnpack
#define NodeSupportChecker OwnSupportChecker

#undef ONNX_OPERATOR_KERNEL_CLASS_NAME
#undef ONNX_OPERATOR_VERSIONED_KERNEL_CLASS_NAME
#undef ONNX_OPERATOR_TYPED_KERNEL_CLASS_NAME
#define ONNX_OPERATOR_KERNEL_CLASS_NAME(provider, domain, ver, name) \
  ORTRIM_PICK(ORTRIM_XNNPACK_##name, provider##_##name##_##domain##_ver##ver)
#define ONNX_OPERATOR_VERSIONED_KERNEL_CLASS_NAME(provider, domain, startver, endver, name) \
  ORTRIM_PICK(ORTRIM_XNNPACK_##name, provider##_##name##_##domain##_ver##startver##_##endver)
#define ONNX_OPERATOR_TYPED_KERNEL_CLASS_NAME(provider, domain, ver, type, name) \
  ORTRIM_PICK(ORTRIM_XNNPACK_##name, provider##_##name##_##domain##_ver##ver##_##type)
#endif
