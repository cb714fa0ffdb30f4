"""What compilers themselves put into a library, and its licences. Pure."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LLVM: Final = "Apache-2.0 WITH LLVM-exception"
CXX_RUNTIME: Final = (
    ("libc++", LLVM, "ziglang/lib/libcxx/LICENSE.TXT"),
    ("libc++abi", LLVM, "ziglang/lib/libcxxabi/LICENSE.TXT"),
    ("libunwind", LLVM, "ziglang/lib/libunwind/LICENSE.TXT"),
)
RUNTIME_LICENCES: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = MappingProxyType({
    "zig": (*CXX_RUNTIME, ("compiler-rt", "MIT", "ziglang/LICENSE")),
    "ndk": (*CXX_RUNTIME, ("compiler-rt", LLVM, "ziglang/lib/libcxx/LICENSE.TXT")),
})  # fmt: skip
"""Kind of toolchain -> component, licence, and the text's place among the tool packages.

zig has a compiler-rt of its own; the NDK has LLVM's, under the licence that all of LLVM has: the text is the same in
every part of it, so that it need not come from an NDK, which may lie in a container's image.
"""
