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
    """The build options of one build; the defaults are those of upstream's own minimal build."""

    cold: Optimization = "-Os"
    """Optimization level of sources that run seldom."""
    hot: Optimization = "-Os"
    """Optimization level of sources that run in every inference: kernels, MLAS, executor, memory, tensors.

    At `-O2`, the few sources that gain by it have conditions taken out of their loops, as at `-O3`.
    """
    frame_pointers: bool = True
    """Keep the frame pointer in every function, for profilers."""
    lto: bool = False
    """Link-time optimization of everything but MLAS: smaller, and linking takes ten times as long."""
    precompiled_headers: bool = False
    """Precompile the common headers: a faster build, the same code."""
    icf: bool = False
    """Identical code folding (lld's `--icf=all`): functions with the same code become one."""
    compression_ordering: bool = False
    """Order sections so that the library compresses better, for a smaller download."""
    unwind_tables: bool | Literal["compressed"] | None = None
    """Keep in the library what a stack is walked by, in the form that the target's crash reporters read.

    Without, they are among the symbols of an ELF library, apart from it. None is upstream's recipe: its code goes
    without, and the toolchain's C++ library keeps them. Compressed they are never loaded; see
    `binaries.elf`.
    """
    hash_style_both: bool = True
    """Keep the System V hash table beside the GNU one, which every loader of today reads (`--hash-style=both`)."""
    packed_relocations: bool = False
    """Pack relocations (RELR, or Android's own form) as far as every loader of the target reads it."""
    libcxx_no_exceptions: bool = False
    """Compile libc++ from source, without exceptions and wide characters."""
    type_reduction: bool = False
    """Leave out the tensor kinds and element types that no model uses."""
    dead_kernel_elimination: bool = False
    """Leave out the MLAS kernels that nothing in the library can reach."""
    avx512_kernels: bool = False
    """Include MLAS's AVX-512 kernels, which minimal builds leave out, where they were measured to be faster."""
    lean_errors: bool | Literal["places"] = False
    """Make messages of errors and logs in one place for the whole library; `places` leaves out all but file and line.

    The sentences are the same; a function is named without its arguments.
    """
    api: Api = "all"
    """Functions of the C API that are kept; the others return `ORT_NOT_IMPLEMENTED` (`compiling.mechanisms`)."""
    demangler: bool = True
    """Keep what makes a C++ name readable in the last message of a program that ends by an exception."""


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
    lld = elf and toolchain in LINKS_WITH_LLD
    return replace(
        build_options,
        lto=build_options.lto and lld and not static,
        precompiled_headers=build_options.precompiled_headers and toolchain != "gcc",
        icf=build_options.icf and lld,
        compression_ordering=build_options.compression_ordering and toolchain == "zig" and elf,
        unwind_tables=exceptions or build_options.unwind_tables or (build_options.unwind_tables if elf else None),
        libcxx_no_exceptions=build_options.libcxx_no_exceptions
        and toolchain == "zig"
        and not (exceptions or wide_characters),
        dead_kernel_elimination=build_options.dead_kernel_elimination and lld,
        avx512_kernels=build_options.avx512_kernels and x64 and lld and build_options.dead_kernel_elimination,
        demangler=build_options.demangler or not lld,
    )
