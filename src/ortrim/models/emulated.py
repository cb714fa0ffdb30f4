"""Converting on a processor that is always the same, for what the converter makes after the one that it runs on.

The width of the NCHWc layout is such a thing: 16 where there is AVX-512, else 8 (`platform.cpp` of MLAS). A minimal
build has no AVX-512 kernels and takes 8 on every x64 processor, so that a model laid out in 16 would not run there.
"""

import platform
from dataclasses import replace
from typing import Final

from ortrim.errors import ConvertError
from ortrim.tools.base import require
from ortrim.tools.emulators import X64_USER
from ortrim.tools.full_runtime import FullRuntime

CPU: Final = "Haswell-noTSX,-x2apic,-tsc-deadline,-invpcid,-pcid"
"""AVX2 without AVX-512; qemu warns of the features taken away, which it does not emulate."""
HOST: Final = ("Linux", "x86_64")


def emulated(runtime: FullRuntime, where: str) -> FullRuntime:
    """Return the same runtime on an emulated processor with AVX2 and without AVX-512.

    Raises `ConvertError` (`layout-not-here`) on a machine whose own wheel is not for x64, and `ToolError` without qemu.
    """
    if (here := (platform.system(), platform.machine())) != HOST:
        what = "a model laid out for x64 can be converted on Linux on x64 alone"
        why = f"this is {' on '.join(here)}, whose wheel of ONNX Runtime knows no such layout"
        hint = "build there, or leave 'layout' out"
        raise ConvertError("layout-not-here", what, where=where, why=why, hint=hint)
    qemu = require(X64_USER)
    return replace(runtime, words=(str(qemu.path), "-cpu", CPU, *runtime.words))
