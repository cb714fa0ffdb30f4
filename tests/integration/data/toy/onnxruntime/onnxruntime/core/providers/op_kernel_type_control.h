#pragma once

template <typename Operator>
struct Allowed {
  static constexpr int length = 0;
};

#include "core/providers/op_kernel_type_control_overrides.inc"
#define ORT_OP_KERNEL_ARG_LENGTH(OpName) Allowed<struct OpName>::length
