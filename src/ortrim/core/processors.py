"""Processors that a library may take for granted: the names that buildspecs use and what zig calls them. Pure.

A processor named here is the least that the library runs on; what a better one has besides is used only where ONNX
Runtime finds it at run time. The names are those of GCC and Clang.
"""

from typing import Final

from ortrim.core.targets import Architecture

ARM64: Final = (
    "cortex-a35", "cortex-a53", "cortex-a55", "cortex-a57", "cortex-a72", "cortex-a73", "cortex-a75", "cortex-a76",
    "cortex-a78", "neoverse-n1",
)  # fmt: skip
ARM: Final = ("cortex-a7", "cortex-a8", "cortex-a9", "cortex-a15", "cortex-a17")
"""Each has NEON or may have it; one without is not supported."""
ARM_OF_64_BITS: Final = ("cortex-a53", "cortex-a72")
"""Processors of 64 bits that run programs of 32, with the cryptographic instructions that they may lack."""
NO_CRYPTOGRAPHY: Final = "-aes-sha2"
"""Taken away, since it is an option of these cores that many boards (Raspberry Pi 3 and 4) do not have."""

CPUS: Final[dict[Architecture, dict[str, str]]] = {
    Architecture.X64: {name: name.replace("-", "_") for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4")},
    Architecture.ARM64: {name: name.replace("-", "_") + NO_CRYPTOGRAPHY for name in ARM64},
    Architecture.ARM: {
        **{name: name.replace("-", "_") + "+neon" for name in ARM},
        **{name: name.replace("-", "_") + NO_CRYPTOGRAPHY for name in ARM_OF_64_BITS},
    },
    Architecture.RISCV64: {name: name.replace("-", "_") for name in ("sifive-u74", "spacemit-x60")},
}
"""By architecture: the name in a buildspec -> the argument of zig's `-mcpu`."""

GENERIC: Final = {Architecture.ARM: "generic+v7a+neon"}
"""What `-mcpu` says without a floor, where it must say something: for ARM, NEON is part of the target."""


def zig_cpu(architecture: Architecture, cpu: str | None) -> str:
    """Return zig's `-mcpu` for a processor named in a buildspec, or for none; empty when zig's own default is meant.

    Raises KeyError for a name that is not in `CPUS`.
    """
    return CPUS[architecture][cpu] if cpu else GENERIC.get(architecture, "")
