"""Android's NDK as far as plans know it: where its parts lie, and its names for machines. Pure.

Facts: the layout of r19 and later (one clang, one sysroot), which CMake's `Platform/Android-Determine.cmake` takes for
granted too. The compilers run on x86-64 alone; there is no NDK for Linux on ARM.
"""

from typing import Final

from ortrim.core.targets import Architecture

PREBUILT: Final = "toolchains/llvm/prebuilt/linux-x86_64"
PROPERTIES: Final = "source.properties"
TOOLCHAIN_FILE: Final = "build/cmake/android.toolchain.cmake"
LEVELS: Final = "meta/platforms.json"
"""The lowest and the highest API level, as `min` and `max`."""
LIBRARIES: Final = f"{PREBUILT}/sysroot/usr/lib"
PROGRAMS: Final = {
    name: f"{PREBUILT}/bin/{name}" for name in ("clang", "clang++", "llvm-ar", "llvm-ranlib", "llvm-objcopy")
}

TRIPLES: Final = {
    Architecture.ARM64: "aarch64-linux-android", Architecture.ARM: "armv7a-linux-androideabi",
    Architecture.X64: "x86_64-linux-android", Architecture.X86: "i686-linux-android",
}  # fmt: skip
"""What clang is told to compile for; the API level follows without anything between."""
LIBRARY_FOLDERS: Final = {**TRIPLES, Architecture.ARM: "arm-linux-androideabi"}
"""The folders below `LIBRARIES`."""
