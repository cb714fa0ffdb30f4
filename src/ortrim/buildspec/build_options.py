"""Profiles: named sets of the build options that decide how large and how fast a library is. Pure.

What each build option was measured to bring is in benchmarks/results/build_options.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

ProfileName = Literal["balanced", "size", "speed", "upstream"]
PROFILE_NAMES: Final[tuple[ProfileName, ...]] = get_args(ProfileName)

Optimization = Literal["-Oz", "-Os", "-O2", "-O3"]

Api = Literal["all", "inference"] | tuple[str, ...]
"""Which functions of the C API a library keeps: a named set, or names, of which one may be that of a set."""

LINKS_WITH_LLD: Final = ("zig", "ndk")
"""Kinds of toolchains whose linker can fold functions and leave sections out."""

PAST_DRIVER: Final = "-DORTRIM_PAST_DRIVER"
"""Among the arguments of a link by zig, asks for lld itself; a definition, since no compiler takes offence at one."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """The build options of one build, which `buildspec.BuildOptionChoices` explains; the defaults are upstream's own.

    At `-O2`, the few `hot` sources that gain by it have conditions taken out of their loops, as at `-O3`. Without
    `unwind_tables` these are among the symbols of an ELF library, apart from it. None is upstream's recipe: its code
    goes without, and the toolchain's C++ library keeps them. Compressed they are never loaded; see `binaries.elf`. Of
    the C API's functions that `api` leaves out, `compiling.mechanisms` has more.
    """

    cold: Optimization = "-Os"
    hot: Optimization = "-Os"
    frame_pointers: bool = True
    lto: bool = False
    precompiled_headers: bool = False
    icf: bool = False
    compression_ordering: bool = False
    unwind_tables: bool | Literal["compressed"] | None = None
    hash_style_both: bool = True
    packed_relocations: bool = False
    libcxx_no_exceptions: bool = False
    type_reduction: bool = False
    dead_kernel_elimination: bool = False
    avx512_kernels: bool = False
    lean_errors: bool | Literal["places"] = False
    api: Api = "all"
    demangler: bool = True


_SMALL: Final = BuildOptions(
    frame_pointers=False, precompiled_headers=True, icf=True, unwind_tables=False, hash_style_both=False,
    compression_ordering=True, packed_relocations=True, libcxx_no_exceptions=True, type_reduction=True,
    dead_kernel_elimination=True, lean_errors=True, demangler=False,
)  # fmt: skip
PROFILES: Final[Mapping[str, BuildOptions]] = {
    "balanced": replace(_SMALL, cold="-Oz", hot="-O2", avx512_kernels=True),
    "size": replace(_SMALL, cold="-Oz", hot="-Oz", lto=True, api="inference", lean_errors="places"),
    "speed": replace(_SMALL, cold="-O2", hot="-O3", lto=True, avx512_kernels=True, compression_ordering=False),
    "upstream": BuildOptions(),
}


def profile_for(profile: ProfileName, kept: Mapping[str, Any]) -> BuildOptions:
    """Return the build options of a profile on a platform that keeps some (`Platform.KEPT`); `upstream` has its own."""
    return replace(PROFILES[profile], **({} if profile == "upstream" else kept))


def applicable(
    build_options: BuildOptions,
    *,
    toolchain: str,
    elf: bool,
    x64: bool,
    exceptions: bool,
    wide_characters: bool = False,
    static: bool = False,
) -> BuildOptions:
    """Return the build options as far as a kind of toolchain has them for ELF or Mach-O, and the library allows them.

    AVX-512 kernels are x64's, and come where those kernels can be left out that no model reaches. Only zig brings the
    sources of its C++ library; exceptions need the tables and the toolchain's own library, and so do wide characters.
    What a linker makes of many sources at once is no file that a static library could be joined of.
    """
    asked, lld = build_options, elf and toolchain in LINKS_WITH_LLD
    own_runtime = toolchain == "zig" and not (exceptions or wide_characters)
    return replace(
        asked,
        lto=asked.lto and lld and not static,
        precompiled_headers=asked.precompiled_headers and toolchain != "gcc",
        icf=asked.icf and (lld or toolchain == "zig"),
        compression_ordering=asked.compression_ordering and toolchain == "zig" and elf,
        unwind_tables=exceptions or asked.unwind_tables or (asked.unwind_tables if elf else None),
        libcxx_no_exceptions=asked.libcxx_no_exceptions and own_runtime,
        dead_kernel_elimination=asked.dead_kernel_elimination and (lld or (toolchain == "zig" and not static)),
        avx512_kernels=asked.avx512_kernels and x64 and lld and asked.dead_kernel_elimination,
        demangler=asked.demangler or not lld,
    )
