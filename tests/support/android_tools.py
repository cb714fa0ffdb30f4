"""Tools of others that read what we pack: Android's aapt2, and ProGuard, whose rules R8 takes; from Debian trixie."""

import platform
from pathlib import Path
from typing import Final

from android_root import ARCHITECTURES, SUITE
from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import Completed, run
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages

PACKAGES: Final = (
    "aapt", "android-framework-res", "android-libaapt", "android-libandroidfw", "android-libbacktrace",
    "android-libbase", "android-libcutils", "android-liblog", "android-libunwind", "android-libutils",
    "android-libziparchive", "7zip", "libc6", "libexpat1", "libgcc-s1", "liblzma5", "libpng16-16t64",
    "libproguard-java", "libprotobuf32t64", "libstdc++6", "zlib1g",
)  # fmt: skip
LAYOUT: Final = "1"


def tools_root() -> Path:
    """Return the folder that the packages were unpacked into; made when the cache has none."""
    architecture = ARCHITECTURES[platform.machine()]
    folder = cache_folder("test-roots") / f"{SUITE}-android-tools-{architecture}-{LAYOUT}"
    publish_folder(folder, lambda temporary: _make(temporary, architecture))
    return folder


def aapt2(*words: str | Path) -> Completed:
    """Run aapt2 with the C library that it was built with."""
    root = tools_root()
    loader = min((root / "usr" / "lib").rglob("ld-linux-*.so.*"))
    folders = sorted({path.parent for path in (root / "usr" / "lib").rglob("*.so*")})
    program = root / "usr" / "lib" / "android-sdk" / "build-tools" / "debian" / "aapt2"
    return run((loader, "--library-path", ":".join(map(str, folders)), program, *words))


def framework() -> Path:
    """Return Android's own resources, which manifests are compiled against."""
    return tools_root() / "usr" / "share" / "android-framework-res" / "framework-res.apk"


def proguard(jar: Path, rules: Path, destination: Path, *more: str) -> Completed:
    """Shrink a jar by some rules and options, without Java's own classes to look at.

    What no rule keeps is removed, and what some rule does not keep is renamed.
    """
    program = tools_root() / "usr" / "share" / "java" / "proguard.jar"
    words = ("-injars", jar, "-outjars", destination, "-include", rules, "-ignorewarnings", "-dontnote", "-dontwarn")
    return run(("java", "-classpath", program, "proguard.ProGuard", *words, *more))


def _make(folder: Path, architecture: str) -> None:
    def accept(_package: DebianPackage, file: Path) -> None:
        done = run(("dpkg-deb", "--extract", file, folder))
        assert done.returncode == 0, done.stderr

    fetch_packages(PackageRequest(names=PACKAGES, suite=SUITE, architecture=architecture), accept)
