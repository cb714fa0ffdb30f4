"""Targets: what a runtime is built for. One identifier each, the same everywhere."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final


class OperatingSystem(StrEnum):
    """The operating system on which the runtime runs."""

    LINUX = "linux"
    ANDROID = "android"
    IOS = "ios"
    """A phone, a tablet, or the simulator of one on a Mac."""
    MACOS = "macos"
    """A Mac, Mac Catalyst on it included."""


class Architecture(StrEnum):
    """The instruction set for which the runtime is compiled, in ONNX Runtime's own words."""

    X64 = "x64"
    ARM64 = "arm64"
    ARM = "arm"
    """ARMv7-A with NEON, hard float."""
    RISCV64 = "riscv64"
    X86 = "x86"
    """32 bits with SSSE3, as Android's older emulators have it."""


class CLibrary(StrEnum):
    """The C library that the runtime is built against."""

    GLIBC = "glibc"
    MUSL = "musl"
    BIONIC = "bionic"
    LIBSYSTEM = "libSystem"
    """Apple's."""


FIRST_GLIBC: Final = {
    Architecture.X64: "2.2.5", Architecture.ARM64: "2.17", Architecture.ARM: "2.4", Architecture.RISCV64: "2.27",
}  # fmt: skip
"""The first glibc of each architecture: no library for it can load on an older one."""

ABIS: Final = {
    Architecture.ARM64: "arm64-v8a", Architecture.ARM: "armeabi-v7a", Architecture.X64: "x86_64",
    Architecture.X86: "x86",
}  # fmt: skip
"""Android's names of the architectures that it runs on."""
FIRST_ANDROID: Final = "android-arm64-v8a"
"""The target that runs on every phone of today."""
APPLE: Final = (OperatingSystem.IOS, OperatingSystem.MACOS)
APPLE_ARCHITECTURES: Final = {Architecture.ARM64: "arm64", Architecture.X64: "x86_64"}
"""Apple's names of the architectures that it runs on."""
CATALYST: Final = "maccatalyst-arm64"
"""What an app for iPads runs with on a Mac; upstream builds it, too (`--macos Catalyst`)."""
MACOS_UNIVERSAL: Final = "macos-universal2"
"""Selects what is joined into a library for Macs of both kinds; no target of its own."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing a runtime can be built for. `identifier` appears in buildspecs, globs, logs and file names."""

    identifier: str
    system: OperatingSystem
    architecture: Architecture
    c_library: CLibrary = CLibrary.GLIBC


TARGETS: Final = {
    target.identifier: target
    for target in (
        Target(identifier="linux-x64", system=OperatingSystem.LINUX, architecture=Architecture.X64),
        Target(identifier="linux-arm64", system=OperatingSystem.LINUX, architecture=Architecture.ARM64),
        Target(identifier="linux-armhf", system=OperatingSystem.LINUX, architecture=Architecture.ARM),
        Target(identifier="linux-riscv64", system=OperatingSystem.LINUX, architecture=Architecture.RISCV64),
        Target(
            identifier="linux-arm64-musl",
            system=OperatingSystem.LINUX,
            architecture=Architecture.ARM64,
            c_library=CLibrary.MUSL,
        ),
        *(
            Target(
                identifier=f"android-{abi}",
                system=OperatingSystem.ANDROID,
                architecture=architecture,
                c_library=CLibrary.BIONIC,
            )
            for architecture, abi in ABIS.items()
        ),
        *(
            Target(identifier=identifier, system=system, architecture=architecture, c_library=CLibrary.LIBSYSTEM)
            for identifier, system, architecture in (
                ("ios-arm64", OperatingSystem.IOS, Architecture.ARM64),
                ("ios-simulator-arm64", OperatingSystem.IOS, Architecture.ARM64),
                ("ios-simulator-x86_64", OperatingSystem.IOS, Architecture.X64),
                ("macos-arm64", OperatingSystem.MACOS, Architecture.ARM64),
                ("macos-x86_64", OperatingSystem.MACOS, Architecture.X64),
                (CATALYST, OperatingSystem.MACOS, Architecture.ARM64),
            )
        ),
    )
}


def matches(pattern: str, identifier: str) -> bool:
    """Whether `pattern`, an identifier, a glob or a dash-bounded prefix (`linux` for `linux-x64`), selects a target.

    What is the whole identifier of a target selects that one alone: `linux-arm64` is not `linux-arm64-musl`.
    `macos-universal2` selects what is joined into it.
    """
    if pattern in TARGETS:
        return pattern == identifier
    if pattern == MACOS_UNIVERSAL:
        return matches(OperatingSystem.MACOS, identifier)
    return fnmatchcase(identifier, pattern) or identifier.startswith(pattern + "-")


def minimum_glibc(target: Target, asked: str) -> str:
    """Return the oldest glibc on which a library for `target` loads when `asked` is wanted; empty for another libc."""
    if target.c_library is not CLibrary.GLIBC:
        return ""
    return max(asked, FIRST_GLIBC[target.architecture], key=version_numbers)


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a dotted version as numbers that compare."""
    return tuple(int(part) for part in version.split("."))
