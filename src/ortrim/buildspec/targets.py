"""Targets: what a runtime is built for. One identifier each, the same everywhere; other names are translated."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from ortrim.errors import UsageError


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

    @property
    def converts_nchwc(self) -> bool:
        """Whether models are converted to NCHWc layout on it, where there is an emulator; see models/convert.py."""
        return (self.system, self.architecture) == (OperatingSystem.LINUX, Architecture.X64)

    @property
    def runs_nchwc(self) -> bool:
        """Whether models are converted to NCHWc layout for it, block size 8; on ARM64 the kernels are ours."""
        return self.architecture is Architecture.ARM64 or self.converts_nchwc

    @property
    def is_elf(self) -> bool:
        """Whether libraries are ELF files; Apple's are Mach-O files."""
        return self.system not in APPLE


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

_SEPARATORS: Final = re.compile("[-_/ ]")
_SPELLINGS: Final = {
    "x86_64": "x64", "x86-64": "x64", "arm64-v8a": "android-arm64", "armeabi-v7a": "android-armv7",
    "linux-android": "android", "arm64/v8": "arm64", "arm/v7": "armv7",
}  # fmt: skip
"""Parts of names in which a separator is not one, and what they say in words."""
_TO_BE_NAMED: Final = ("musl", "simulator", "maccatalyst")
"""Targets that are meant only by names that say so."""


def _words(*words: str, only: Callable[[Target], bool]) -> dict[str, frozenset[str]]:
    meant = frozenset(target.identifier for target in TARGETS.values() if only(target))
    return dict.fromkeys(words, meant)


_MEANINGS: Final[Mapping[str, frozenset[str]]] = {
    **_words("linux", only=lambda target: target.system is OperatingSystem.LINUX),
    **_words("gnu", "glibc", "gnueabihf", only=lambda target: target.c_library is CLibrary.GLIBC),
    **_words("musl", "musleabihf", only=lambda target: target.c_library is CLibrary.MUSL),
    **_words("android", "androideabi", only=lambda target: target.system is OperatingSystem.ANDROID),
    **_words("ios", only=lambda target: target.system is OperatingSystem.IOS),
    **_words("iphone", "iphoneos", "ipad", "ipados", only=lambda target: target.identifier == "ios-arm64"),
    **_words("simulator", "iphonesimulator", "sim", only=lambda target: "simulator" in target.identifier),
    **_words(
        "macos",
        "mac",
        "macosx",
        "osx",
        "darwin",
        "universal",
        only=lambda target: target.system is OperatingSystem.MACOS,
    ),
    **_words("maccatalyst", "catalyst", "macabi", only=lambda target: target.identifier == CATALYST),
    **_words("apple", only=lambda target: target.system in APPLE),
    **_words("m1", "m2", "m3", "m4", "silicon", only=lambda target: target.identifier == "macos-arm64"),
    **_words("intel", only=lambda target: target.identifier == "macos-x86_64"),
    **_words("x64", "amd64", only=lambda target: target.architecture is Architecture.X64),
    **_words("arm64", "aarch64", "armv8", "arm64e", only=lambda target: target.architecture is Architecture.ARM64),
    **_words("arm", "arm32", "armv7", "armv7a", "armv7l", only=lambda target: target.architecture is Architecture.ARM),
    **_words("armhf", only=lambda target: target.identifier == "linux-armhf"),
    **_words("riscv64", "riscv64gc", only=lambda target: target.architecture is Architecture.RISCV64),
    **_words("i386", "i686", only=lambda target: target.architecture is Architecture.X86),
    **_words("unknown", "pc", "none", only=lambda _: True),
}
"""What each word says of a target, as Debian, Docker, `uname`, LLVM, Android and Apple name systems and processors."""


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


def meant_by(name: str, offered: Iterable[str] = TARGETS) -> tuple[str, ...]:
    """Return those of the offered targets that another name means, such as `linux-amd64`, `mac-m1` or `*-aarch64`.

    The C library musl, simulators and Mac Catalyst are meant only by names that say so, and by globs.
    """
    meant = _meant_by(name.strip().casefold())
    return tuple(identifier for identifier in offered if identifier in meant)


@cache
def _meant_by(plain: str) -> frozenset[str]:
    for spelling, words in _SPELLINGS.items():
        plain = plain.replace(spelling, words)
    meanings = [
        frozenset[str]().union(*(meant for word, meant in _MEANINGS.items() if fnmatchcase(word, part)))
        for part in _SEPARATORS.split(plain)
    ]
    found = frozenset.intersection(*meanings)
    usual = frozenset(identifier for identifier in found if not any(word in identifier for word in _TO_BE_NAMED))
    return found if _is_glob(plain) else usual or found


def selected(
    pattern: str, offered: Iterable[str] = TARGETS, *, note: Callable[[str], None] = lambda _: None
) -> tuple[str, ...]:
    """Return the offered targets that a pattern selects, as `matches` says, else those that it means by another name.

    The latter are reported to `note`.
    """
    pattern, offered = pattern.strip(), tuple(offered)
    if found := tuple(identifier for identifier in offered if matches(pattern, identifier)):
        return found
    found = meant_by(pattern, offered)
    if len({TARGETS[identifier].system for identifier in found}) > 1 and not _is_glob(pattern):
        hint = f"choose among: {', '.join(found)}"
        raise UsageError("ambiguous-target", f"{pattern!r} could be any of several", where="--target", hint=hint)
    if found:
        note(f"target {pattern} is {', '.join(found)}")
    return found


def with_identifiers(patterns: str, packages: Iterable[str] = (), *, note: Callable[[str], None]) -> str:
    """Return patterns, with commas between, in which identifiers stand for other names; what is unknown stays.

    `packages` are further identifiers that patterns select.
    """
    known = (*TARGETS, *packages)
    parts = (
        part if any(matches(part.strip(), name) for name in known) else ",".join(selected(part, note=note)) or part
        for part in patterns.split(",")
    )
    return ",".join(parts)


def _is_glob(pattern: str) -> bool:
    return any(character in pattern for character in "*?[")


def minimum_glibc(target: Target, asked: str) -> str:
    """Return the oldest glibc on which a library for `target` loads when `asked` is wanted; empty for another libc."""
    if target.c_library is not CLibrary.GLIBC:
        return ""
    return max(asked, FIRST_GLIBC[target.architecture], key=version_numbers)


def version_numbers(version: str) -> tuple[int, ...]:
    """Return a dotted version as numbers that compare."""
    return tuple(int(part) for part in version.split("."))


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
"""What `-mcpu` says without a baseline, where it must say something: for ARM, NEON is part of the target."""


def zig_cpu(architecture: Architecture, cpu: str | None) -> str:
    """Return zig's `-mcpu` for a processor named in a buildspec, or for none; empty when zig's own default is meant.

    Raises KeyError for a name that is not in `CPUS`.
    """
    return CPUS[architecture][cpu] if cpu else GENERIC.get(architecture, "")
