"""Which operator a kernel belongs to, read from the mangled name of the function that registers it. Pure.

Upstream makes one specialisation `BuildKernelCreateInfo<kCpuExecutionProvider_Add_kOnnxDomain_ver7_12_float>` for each
kernel; the class is named by the macros `ONNX_OPERATOR_*KERNEL_CLASS_NAME` of `core/framework/op_kernel.h` and the
registration files (`cpu_execution_provider.cc`, `cpu_contrib_kernels.cc`) need all that they list.
"""

import re
from typing import Final

DOMAINS: Final = {
    "kOnnxDomain": "ai.onnx",
    "kMLDomain": "ai.onnx.ml",
    "kMSDomain": "com.microsoft",
    "kPytorchAtenDomain": "org.pytorch.aten",
    "kMSExperimentalDomain": "com.microsoft.experimental",
    "kMSNchwcDomain": "com.microsoft.nchwc",
    "kMSInternalNHWCDomain": "com.ms.internal.nhwc",
    "kMSDmlDomain": "com.microsoft.dml",
    "kNGraphDomain": "com.intel.ai",
    "kVitisAIDomain": "com.xilinx",
}
"""As `map_ort_constant_to_domain` in upstream's `tools/ci_build/op_registration_utils.py`."""

_REGISTRATION: Final = re.compile(r"21BuildKernelCreateInfoI")
_DEMANGLED: Final = re.compile(r"\bBuildKernelCreateInfo<(?:\w+::)*(k\w+)>")
_LENGTH: Final = re.compile(r"(?:N|St|S[0-9A-Z]*_)*([0-9]{1,4})")
_CLASS: Final = re.compile(rf"k[A-Za-z0-9]+_([A-Za-z_][A-Za-z0-9_]*?)_({'|'.join(DOMAINS)})_ver[0-9]\w*")


def kernel_key(symbol: str) -> str | None:
    """Return the operator that a mangled symbol registers a kernel of, as `ai.onnx:Add`.

    None for every other symbol, and for a kernel whose class or domain is not named as upstream names them.
    """
    start = _REGISTRATION.search(symbol)
    return _class_key(_template_argument(symbol, start.end())) if start else None


def demangled_kernel_key(symbol: str) -> str | None:
    """Return what `kernel_key` does, from the demangled name `BuildKernelCreateInfo<onnxruntime::kCpu...>()`."""
    argument = _DEMANGLED.search(symbol)
    return _class_key(argument[1]) if argument else None


def _class_key(name: str) -> str | None:
    named = _CLASS.fullmatch(name)
    return f"{DOMAINS[named[2]]}:{named[1]}" if named else None


def _template_argument(symbol: str, position: int) -> str:
    """Return the innermost name of the class that the template argument at `position` is, such as `NS_3foo3barE`."""
    name = ""
    while length := _LENGTH.match(symbol, position):
        position = length.end() + int(length[1])
        name = symbol[length.end() : position]
    return name if symbol[position : position + 1] == "E" else ""
