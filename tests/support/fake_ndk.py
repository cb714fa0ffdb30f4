"""An NDK and the SDK's command-line tools as Google lays them out, with scripts in place of programs."""

import stat
import zipfile
from pathlib import Path

VERSION = "27.2.12479018"
PREBUILT = "toolchains/llvm/prebuilt/linux-x86_64"
TRIPLES = ("aarch64-linux-android", "arm-linux-androideabi", "i686-linux-android", "x86_64-linux-android")
PROGRAMS = ("clang-18", "lld", "llvm-ar", "llvm-objcopy")
LINKS = {
    "clang": "clang-18",
    "clang++": "clang-18",
    "ld.lld": "lld",
    "llvm-ranlib": "llvm-ar",
    "llvm-strip": "llvm-objcopy",
}
SCRIPT = "#!/bin/sh\necho fake\n"


def write_ndk(path: Path, version: str = VERSION, without: str = "") -> None:
    """Write the zip file of an NDK; `without` names a part that it lacks."""
    files = {
        "source.properties": f"Pkg.Desc = Android NDK\nPkg.Revision = {version}\nPkg.BaseRevision = {version}\n",
        "build/cmake/android.toolchain.cmake": "# toolchain\n",
        "meta/platforms.json": '{"min": 21, "max": 35}\n',
        **{f"{PREBUILT}/sysroot/usr/lib/{triple}/libc++_shared.so": "library" for triple in TRIPLES},
    }
    programs = {f"{PREBUILT}/bin/{name}": SCRIPT for name in PROGRAMS}
    links = {f"{PREBUILT}/bin/{name}": target for name, target in LINKS.items()}
    _write(
        path,
        "android-ndk-r27c",
        *({k: v for k, v in part.items() if k != without} for part in (files, programs, links)),
    )


def write_command_line_tools(path: Path) -> None:
    files = {"source.properties": "Pkg.Revision=19.0\nPkg.Path=cmdline-tools;19.0\n", "lib/sdkmanager.jar": "jar"}
    _write(path, "cmdline-tools", files, {"bin/sdkmanager": SCRIPT}, {})


def _write(path: Path, top: str, files: dict[str, str], programs: dict[str, str], links: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for content, mode in (
            (files, stat.S_IFREG | 0o644),
            (programs, stat.S_IFREG | 0o755),
            (links, stat.S_IFLNK | 0o777),
        ):
            for name, text in content.items():
                entry = zipfile.ZipInfo(f"{top}/{name}")
                entry.create_system, entry.external_attr = 3, mode << 16
                archive.writestr(entry, text)
