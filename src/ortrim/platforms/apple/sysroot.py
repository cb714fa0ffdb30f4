"""A sysroot for Apple's systems without an SDK of Apple's: a stub of the C library, and a header that corrects zig's.

zig has the headers of macOS, which are those of iOS too, and its own C++ library. It leaves out code that nothing
needs, but asks the loader for what that code calls. With a stub that has public names alone, no such name is left, and
one that is called and not there fails the link, not an app's start.
"""

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder, cached_folder
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.buildspec.targets import version_numbers
from ortrim.compiling.plan import Toolchain
from ortrim.pins.shipped import shipped_text

SYMBOLS: Final = "apple/symbols.toml"
STUB: Final = "usr/lib/libSystem.tbd"
SETTINGS: Final = "SDKSettings.json"
CORRECTED: Final = "sys/cdefs.h"
SDK: Final = "27.0"
"""The SDK whose headers zig has, which is what a library says that it was built with."""
TRIPLE: Final = re.compile(r"(?P<machine>\w+)-(?P<system>\w+?)\.(?P<version>[\d.]+)(?P<variant>-simulator)?")
ARCHITECTURES: Final = {"aarch64": "arm64", "x86_64": "x86_64"}
"""zig's words for processors -> Apple's."""
ASSEMBLY_NAME: Final = "dyld_stub_binder"
"""The one name that has no underscore in front, as a name of C has in Mach-O."""
SAME_NUMBERS: Final = 26
"""From this version on, macOS has the number of the iOS beside it; macOS 11 came with iOS 14."""


def public_names(triple: str) -> tuple[str, ...]:
    """Return the names of C that a system's C library offers, by the triple that zig compiles for it with."""
    machine, system, version = _parts(triple)
    name = "macos" if system == "macos" else "ios"
    keys = ("all", name, f"{name}-{ARCHITECTURES[machine]}")
    release = _release(system, version)
    found = {
        symbol
        for releases in tomllib.loads(shipped_text(SYMBOLS)).values()
        for first, names in releases.items()
        if version_numbers(first) <= release
        for key in keys
        for symbol in names.get(key, "").split()
    }
    return tuple(sorted(found))


def sysroot_files(triple: str) -> dict[str, str]:
    """Return the texts of a sysroot by their places."""
    machine, system, _ = _parts(triple)
    target = f"{ARCHITECTURES[machine]}-{system}"
    symbols = ", ".join(f"'{name if name == ASSEMBLY_NAME else f'_{name}'}'" for name in public_names(triple))
    stub = (
        "--- !tapi-tbd",
        "tbd-version: 4",
        f"targets: [ {target} ]",
        "install-name: '/usr/lib/libSystem.B.dylib'",
        "exports:",
        f"  - targets: [ {target} ]",
        f"    symbols: [ {symbols} ]",
        "...",
    )
    return {
        STUB: "".join(f"{line}\n" for line in stub),
        SETTINGS: json.dumps({"MinimalDisplayName": SDK, "Version": SDK}) + "\n",
        f"include/{CORRECTED}": (shipped_folder("apple") / CORRECTED).read_text(encoding="utf-8"),
    }


def sysroot_digest(triple: str) -> str:
    """Return the digest of all that is in a sysroot, twenty letters of it."""
    return hashlib.sha256(json.dumps(sysroot_files(triple)).encode()).hexdigest()[:20]


def sysroot_of(toolchain: Toolchain) -> Path:
    """Return the sysroot of a toolchain for Apple's systems, made if it is not in the cache."""
    folder = cache_folder("sysroots") / sysroot_digest(toolchain.triple)
    cached_folder(folder, lambda made: _fill(made, toolchain.triple))
    return folder


def _fill(folder: Path, triple: str) -> None:
    with storage_errors(folder):
        for place, text in sysroot_files(triple).items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text, encoding="utf-8")


def _parts(triple: str) -> tuple[str, str, str]:
    """Return a triple's processor, its system as stubs call it, and the oldest version of that."""
    found = TRIPLE.fullmatch(triple)
    assert found is not None
    return found["machine"], f"{found['system']}{found['variant'] or ''}", found["version"]


def _release(system: str, version: str) -> tuple[int, ...]:
    """Return a version as iOS counts."""
    major, *rest = version_numbers(version)
    if system != "macos" or major >= SAME_NUMBERS:
        return (major, *rest)
    return (major + 3, *rest)
