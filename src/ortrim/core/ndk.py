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
    Architecture.ARM64: "aarch64-none-linux-android", Architecture.ARM: "armv7-none-linux-androideabi",
    Architecture.X64: "x86_64-none-linux-android", Architecture.X86: "i686-none-linux-android",
}  # fmt: skip
"""What clang compiles for, spelled as in CMake's `Platform/Android-Determine.cmake`; the API level follows at once."""
LIBRARY_FOLDERS: Final = {
    Architecture.ARM64: "aarch64-linux-android", Architecture.ARM: "arm-linux-androideabi",
    Architecture.X64: "x86_64-linux-android", Architecture.X86: "i686-linux-android",
}  # fmt: skip
"""The folders below `LIBRARIES`."""
