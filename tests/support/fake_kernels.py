"""A source tree with a few kernel sources, and the type control that upstream's configuration writes for them."""

from collections.abc import Iterable
from pathlib import Path

from ortrim.compiling.workspace import JobPaths

CPU = "onnxruntime/onnxruntime/core/providers/cpu"
CONTRIB = "onnxruntime/onnxruntime/contrib_ops/cpu"
OVERRIDES = "op_reduction.generated/onnxruntime/core/providers/op_kernel_type_control_overrides.inc"
TYPED = {
    f"{CPU}/math/element_wise_ops.cc": """\
#include "core/providers/op_kernel_type_control.h"
ORT_SPECIFY_OP_KERNEL_ARG_DEFAULT_TYPES(kCpuExecutionProvider, kOnnxDomain, Pow, 7, Input, 0, float, double);
ORT_SPECIFY_OP_KERNEL_ARG_DEFAULT_TYPES(
    kCpuExecutionProvider, kOnnxDomain, Max, 8, Input, 0,
    float, double);
""",
    f"{CPU}/tensor/cast_op.cc": """\
#include "core/providers/op_kernel_type_control_utils.h"
using Enabled = ORT_OP_KERNEL_ARG_ENABLED_TYPE_LIST_ALL_OPSETS(kCpuExecutionProvider, kOnnxDomain,
                                                               Cast, Input, 0);  // not CastLike's
""",
    f"{CONTRIB}/crop.cc": '#include "core/providers/op_kernel_type_control.h"\n',
}
"""The kernel sources with type control: CastLike is named in a comment, which costs a compilation and nothing else."""
UNTYPED = {
    f"{CPU}/math/gemm.cc": '#include "core/providers/op_kernel_type_controls.h"\n',
    f"{CPU}/math/types.h": '#include "core/providers/op_kernel_type_control.h"\n',
    "onnxruntime/onnxruntime/core/providers/cuda/cast.cc": '#include "core/providers/op_kernel_type_control.h"\n',
}
"""No type control, no source, no source of the processor's own kernels."""

BEFORE = """\
// Copyright (c) Microsoft Corporation. All rights reserved.
namespace onnxruntime {
#define ORT_SPECIFY_OP_KERNEL_ARG_ALLOWED_TYPES(                              \\
    OpDomain, OpName, ArgDirection, ArgIndex, ...)                            \\
  class ORT_OP_KERNEL_TYPE_CTRL_INTERNAL_OP_TAG_CLASS_NAME(OpDomain, OpName);
#define ORT_SPECIFY_OP_KERNEL_GLOBAL_ALLOWED_TYPES(...)             \\
  template <>                                                       \\
  struct TypesHolder<>;
// Examples:
//   ORT_SPECIFY_OP_KERNEL_ARG_ALLOWED_TYPES(kOnnxDomain, Gather, Input, 0, float, int64_t);

// @@insertion_point_begin(allowed_types)@@
"""
AFTER = """\
// @@insertion_point_end(allowed_types)@@

#undef ORT_SPECIFY_OP_KERNEL_ARG_ALLOWED_TYPES
}  // namespace onnxruntime
"""


def make_kernels(folder: Path) -> JobPaths:
    for name, text in {**TYPED, **UNTYPED}.items():
        path = folder / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    names = ("sources", "build", "tools", "wrappers", "config", "runner", "hooks")
    return JobPaths(**{name: folder / name for name in names})


def allowed(operator: str, domain: str = "kOnnxDomain", types: str = "float") -> str:
    return f"ORT_SPECIFY_OP_KERNEL_ARG_ALLOWED_TYPES({domain}, {operator}, Input, 0, {types});\n"


def write_overrides(paths: JobPaths, lines: Iterable[str]) -> None:
    """Write what upstream's configuration leaves, with these lines in the place for them."""
    path = paths.configured / OVERRIDES
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BEFORE + "".join(lines) + AFTER)
