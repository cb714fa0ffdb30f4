"""Profiles: named sets of the levers that decide how large and how fast a library is. Pure.

What each lever was measured to bring is in benchmarks/results/levers.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

ProfileName = Literal["balanced", "size", "speed", "upstream"]
PROFILE_NAMES: Final[tuple[ProfileName, ...]] = get_args(ProfileName)

Optimization = Literal["-Oz", "-Os", "-O2", "-O3"]

LINKS_WITH_LLD: Final = ("zig", "ndk")
"""Kinds of toolchains whose linker can fold functions and leave sections out."""

PAST_DRIVER: Final = "-DORTRIM_PAST_DRIVER"
"""Among the arguments of a link by zig, asks for lld itself; a definition, since no compiler takes offence at one."""


@dataclass(frozen=True, kw_only=True)
class Levers:
    """The levers of one build; the defaults are those of upstream's own minimal build."""

    cold: Optimization = "-Os"
    """How sources are optimised that run seldom."""
    hot: Optimization = "-Os"
    """How sources are optimised that run in every inference: kernels, MLAS, the executor, memory and tensors.

    At `-O2`, the few sources that gain by it have conditions taken out of their loops, as at `-O3`.
    """
    frame_pointers: bool = True
    """Keep a register in every function for profilers."""
    link_time: bool = False
    """Optimise once more when everything is linked, MLAS aside: smaller, and a link takes ten times as long."""
    precompiled: bool = False
    """Compile common headers once: a faster build, the same code."""
    folding: bool = False
    """Keep one of several functions of the same code."""
    compressible: bool = False
    """Lay functions and data out so that the library compresses better, for a smaller download."""
    unwinding: bool = True
    """Keep tables of unwinding, of no use to a library without exceptions."""
    both_hashes: bool = True
    """Keep System V's table of symbols beside GNU's, which every loader of today reads."""
    packing: bool = False
    """Pack relocations in the best form that every loader of the target reads."""
    lean_runtime: bool = False
    """Compile the C++ library along, without exceptions and wide characters."""
    unused_types: bool = True
    """Keep kinds of tensors and of elements that none of the models has."""
    unreached_kernels: bool = True
    """Keep the kernels of MLAS's table that nothing in the library can reach."""
    wide_vectors: bool = False
    """Bring MLAS's kernels for AVX-512, which minimal builds go without, where they were measured to be quicker."""
    demangler: bool = True
    """Keep what makes a C++ name readable in the last message of a program that ends by an exception."""


_SMALL: Final = Levers(
    frame_pointers=False, precompiled=True, folding=True, unwinding=False, both_hashes=False, packing=True,
    lean_runtime=True, demangler=False, unreached_kernels=False,
    unused_types=False,
)  # fmt: skip
PROFILES: Final[Mapping[str, Levers]] = {
    "balanced": replace(_SMALL, cold="-Oz", hot="-O2", wide_vectors=True),
    "size": replace(_SMALL, cold="-Oz", hot="-Oz", link_time=True, compressible=True),
    "speed": replace(_SMALL, cold="-O2", hot="-O3", link_time=True, wide_vectors=True),
    "upstream": Levers(),
}


def applicable(
    levers: Levers,
    *,
    toolchain: str,
    elf: bool,
    x64: bool,
    exceptions: bool,
    wide_characters: bool = False,
    static: bool = False,
) -> Levers:
    """Return the levers as far as a kind of toolchain has them for ELF or Mach-O, and as the library can do with them.

    Wide vectors are x64's, and come where those kernels can be left out that no model reaches. Only zig brings the
    sources of its C++ library; exceptions need the tables and the toolchain's own library, and so do wide characters.
    What a linker makes of many sources at once is no file that a static library could be joined of.
    """
    lld = elf and toolchain in LINKS_WITH_LLD
    return replace(
        levers,
        link_time=levers.link_time and lld and not static,
        precompiled=levers.precompiled and toolchain != "gcc",
        folding=levers.folding and lld,
        compressible=levers.compressible and toolchain == "zig" and elf,
        unwinding=levers.unwinding or exceptions or not lld,
        lean_runtime=levers.lean_runtime and toolchain == "zig" and elf and not (exceptions or wide_characters),
        unreached_kernels=levers.unreached_kernels or not lld,
        wide_vectors=levers.wide_vectors and x64 and lld and not levers.unreached_kernels,
        demangler=levers.demangler or not lld,
    )
