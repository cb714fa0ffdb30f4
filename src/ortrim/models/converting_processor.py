"""Converting on the processor that a layout is for: the converter makes it after the one that it runs on.

The width of the NCHWc layout is such a thing: 16 where there is AVX-512, else 8 (`platform.cpp` of MLAS).
"""

import platform
from dataclasses import replace
from pathlib import Path
from typing import Final

from ortrim.core.model_spec import Layout
from ortrim.errors import ConvertError
from ortrim.storage.files import storage_errors
from ortrim.tools.base import require
from ortrim.tools.emulators import X64_USER
from ortrim.tools.full_runtime import FullRuntime

CPU: Final = "Haswell-noTSX,-x2apic,-tsc-deadline,-invpcid,-pcid"
"""AVX2 without AVX-512; qemu warns of the features taken away, which it does not emulate."""
HOST: Final = ("Linux", "x86_64")
CPUINFO: Final = Path("/proc/cpuinfo")


def converter_for(layout: Layout | None, runtime: FullRuntime, where: str) -> FullRuntime:
    """Return the same runtime on a processor that makes the layout: emulated, or this machine's where that has to be.

    Blocks of 8 come of an emulated processor with AVX2 and without AVX-512; blocks of 16 of this one, because qemu has
    no AVX-512. Other models do not depend on it.
    Raises `ConvertError` (`layout-not-here`) on a machine whose own wheel is not for x64 or which has no AVX-512 where
    it is needed, and `ToolError` without qemu.
    """
    if layout == "nchwc8":
        _require_host(where)
        qemu = require(X64_USER)
        return replace(runtime, words=(str(qemu.path), "-cpu", CPU, *runtime.words))
    if layout == "nchwc16":
        _require_host(where)
        _require_avx512(where)
    return runtime


def _require_host(where: str) -> None:
    if (here := (platform.system(), platform.machine())) != HOST:
        what = "a model laid out for x64 can be converted on Linux on x64 alone"
        why = f"this is {' on '.join(here)}, whose wheel of ONNX Runtime knows no such layout"
        hint = "build there, or leave 'layout' out"
        raise ConvertError("layout-not-here", what, where=where, why=why, hint=hint)


def _require_avx512(where: str) -> None:
    with storage_errors(CPUINFO):
        features = CPUINFO.read_text(encoding="utf-8", errors="replace").split()
    if "avx512f" not in features:
        what = "a model with blocks of 16 channels (layout = 'nchwc16') can be converted with AVX-512 alone"
        why = "this machine's processor has none, and no emulator either"
        hint = "convert on one that has it, or take layout = 'nchwc8'"
        raise ConvertError("layout-not-here", what, where=where, why=why, hint=hint)
