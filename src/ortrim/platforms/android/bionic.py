"""A sysroot for Android without an NDK: bionic's headers and start files, and stubs of what apps may use.

All is made of one commit of AOSP's `platform/bionic` and of the symbols by API level that are pinned here, for one ABI
and API level: a folder of headers, and one of libraries. bionic's `libc/Android.bp` says of what the NDK's is made.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder, cached_folder
from ortrim.base.command import last_lines, run
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.base.scripts import packages_folder
from ortrim.binaries.android import system_api
from ortrim.buildspec.targets import ABIS, Architecture
from ortrim.compiling.plan import Toolchain
from ortrim.errors import BuildError
from ortrim.pins.shipped import shipped_text, tool_requirements
from ortrim.platforms.android.arguments import MACHINES, bionic_pin, installation_lines
from ortrim.sources.commits import fetch_commit

LAYOUT_VERSION: Final = 1
"""To be raised when the same commit comes to another sysroot."""
HEADERS: Final = (("libc/include", ""), ("libc/kernel/uapi", ""), ("libc/kernel/android/uapi", ""))
"""Folders of bionic and where their files go below `include`, in this order: what comes later wins."""
LOG_HEADER: Final = "android/log.h"
"""It belongs to Android's logging, which is no part of bionic; ours declares what upstream's sources call."""
KERNEL_MACHINES: Final = {
    Architecture.ARM64: "arm64", Architecture.ARM: "arm", Architecture.X64: "x86", Architecture.X86: "x86",
}  # fmt: skip
"""The kernel's names of machines, whose folders hold the headers of `asm`."""
START: Final = "libc/arch-common/bionic"
OBJECTS: Final = {
    "crtbegin_so": ("crtbegin_so.c", "crtbrand.S"),
    "crtbegin_dynamic": ("crtbegin.c", "crtbrand.S"),
    "crtend_so": ("crtend_so.S",),
    "crtend_android": ("crtend.S",),
}
"""What the compiler links in front of and behind everything else, and its sources; `libc/Android.bp` has the same."""


def sysroot_of(toolchain: Toolchain) -> Path:
    """Return the sysroot of a toolchain for Android, made if it is not in the cache."""
    machine, _, api = toolchain.triple.rpartition(".")
    architecture = next(known for known, name in MACHINES.items() if name == machine)
    return sysroot(architecture, int(api), toolchain.triple)


def sysroot(architecture: Architecture, api: int, triple: str) -> Path:
    """Return the folder of a sysroot, made if it is not in the cache: `include` and `lib`.

    `triple` is zig's.
    """
    parts = (
        str(LAYOUT_VERSION),
        bionic_pin().commit,
        triple,
        hashlib.sha256(shipped_text("android/symbols.toml").encode()).hexdigest(),
        tool_requirements(),
    )
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]
    folder = cache_folder("sysroots") / name
    cached_folder(folder, lambda made: _fill(made, bionic_source(), architecture, api, triple), large=True)
    return folder


def bionic_folder() -> Path:
    """Return where the cache has bionic's files at the pinned commit, once they are fetched."""
    return cache_folder("sysroots") / f"bionic-{bionic_pin().commit[:12]}"


def bionic_source(announce: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of bionic's files at the pinned commit, fetched if it is not in the cache."""
    pin, folder = bionic_pin(), bionic_folder()

    def fetch(made: Path) -> None:
        work = made / ".work"
        work.mkdir()
        fetch_commit(pin, made / "bionic", work, announce)
        shutil.rmtree(work)

    cached_folder(folder, fetch, large=True)
    return folder / "bionic"


def _fill(folder: Path, bionic: Path, architecture: Architecture, api: int, triple: str) -> None:
    with storage_errors(folder):
        include = folder / "include"
        for source, place in HEADERS:
            shutil.copytree(bionic / source, include / place, dirs_exist_ok=True)
        shutil.copytree(include / f"asm-{KERNEL_MACHINES[architecture]}" / "asm", include / "asm")
        shutil.copyfile(shipped_folder("android") / "log.h", include / LOG_HEADER)
        (folder / "lib").mkdir()
        work = folder / ".work"
        work.mkdir()
        zig = _Zig(work, folder, triple)
        _make_stubs(zig, folder / "lib", ABIS[architecture], api)
        _make_objects(zig, folder / "lib", bionic, api)
        shutil.rmtree(work)


class _Zig:
    """The compiler on this machine, with a sysroot that is still being made."""

    def __init__(self, work: Path, folder: Path, triple: str) -> None:
        self.work, self.triple = work, triple
        self._program = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
        installation = work / "libc.txt"
        installation.write_text("\n".join(installation_lines(str(folder))) + "\n", encoding="utf-8")
        caches = {name: str(work / "zig") for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR")}
        self._environment = {**os.environ, **caches, "ZIG_LIBC": str(installation)}

    def compile(self, source: Path, destination: Path, *flags: str | Path) -> None:
        maps = f"-ffile-prefix-map={self.work.parent}=."
        self._run("cc", "-target", self.triple, maps, *flags, "-c", source, "-o", destination)

    def link(self, *arguments: str | Path) -> None:
        self._run("ld.lld", *arguments)

    def _run(self, *arguments: str | Path) -> None:
        done = run((self._program, *arguments), environment=self._environment)
        if done.returncode != 0:
            what = f"the sysroot of {self.triple} could not be made: zig {arguments[0]} failed"
            raise BuildError("sysroot-not-made", what, where="bionic", why=last_lines(done.stderr))


def _make_stubs(zig: _Zig, folder: Path, abi: str, api: int) -> None:
    """Make each library whose symbols are all known, with those that the API level has."""
    for library in system_api(abi).libraries.values():
        if library.symbols is not None:
            names = sorted(name for name, since in library.symbols.items() if since <= api)
            source, linked = zig.work / "stub.S", zig.work / "stub.o"
            # All are functions, data too: what is compiled for Android takes either's address from a table.
            functions = (f".globl {name}\n.type {name},%function\n{name}:\n" for name in names)
            source.write_text(f".text\n{''.join(functions)}", encoding="utf-8")
            zig.compile(source, linked)
            zig.link("-shared", "--hash-style=gnu", "-soname", library.name, linked, "-o", folder / library.name)


def _make_objects(zig: _Zig, folder: Path, bionic: Path, api: int) -> None:
    include = tuple(f"-I{bionic / name}" for name in ("libc", "libc/bionic"))
    flags = ("-fPIC", "-O2", "-fno-sanitize=undefined", f"-DPLATFORM_SDK_VERSION={api}", *include)
    for name, sources in OBJECTS.items():
        parts = []
        for source in sources:
            part = zig.work / f"{source}.o"
            assembler = ("-D__ASSEMBLY__",) if source.endswith(".S") else ()
            zig.compile(bionic / START / source, part, *flags, *assembler)
            parts.append(part)
        zig.link("-r", "--strip-debug", *parts, "-o", folder / f"{name}.o")
