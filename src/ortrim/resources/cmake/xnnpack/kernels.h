// Ahead of the XNNPACK provider's sources: leaves out kernels of operators that the models do not have, since upstream
// reduces the processor's own alone. xnnpack.cmake defines ORTRIM_XNNPACK_<operator> as 1 for one that stays, else as 0.
#pragma once

#include "core/framework/op_kernel.h"
#include "core/providers/xnnpack/xnnpack_init.h"

#ifdef ORT_NO_EXCEPTIONS  // gsl's own, which upstream's sources name, is there with exceptions alone
#include "core/common/narrow.h"
namespace gsl {
using onnxruntime::narrow;
}
#endif

#ifdef ORTRIM_WITHOUT_HALVES
#undef XNNPACK_FP16_SUPPORTED
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
// Of a model in ORT format upstream's loader would have the provider compile what it makes of several nodes, such as Conv
// and Relu, which this one refuses (PartitionOrtFormatModelImpl): it takes single nodes alone.
#include "core/framework/node_unit.h"
#include "core/providers/xnnpack/detail/node_support_checker.h"
#define IsNodeSupported(unit) IsNodeSupported(unit) && unit.UnitType() == NodeUnit::Type::SingleNode
#define IsNodeSupportedWithFusion(unit) IsNodeSupportedWithFusion(unit) ? nullptr : nullptr

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
