"""Kotlin's compiler, as Debian bookworm has it: an old one (1.3), which compiles what newer ones do."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder, publish_folder
from ortrim.base.command import Completed, run
from ortrim.sources.debian import DebianPackage, PackageRequest, fetch_packages

SUITE: Final = "bookworm"
PACKAGES: Final = ("kotlin", "libjetbrains-annotations-java", "libtrove-intellij-java")
COMPILER: Final = (
    "kotlin-compiler.jar", "kotlin-reflect.jar", "kotlin-script-runtime.jar", "kotlin-stdlib.jar",
    "libtrove-intellij.jar", "org.jetbrains.annotations-common.jar", "org.jetbrains.annotations-java8.jar",
)  # fmt: skip
LIBRARIES: Final = ("kotlin-stdlib.jar", "kotlin-stdlib-jdk7.jar")
"""What a program needs; since Kotlin 1.8 the second is in the first."""
LAYOUT: Final = "1"


def kotlin_libraries() -> list[Path]:
    return [_root() / name for name in LIBRARIES]


def kotlinc(source: Path, classpath: Sequence[Path], destination: Path) -> Completed:
    compiler = os.pathsep.join(str(_root() / name) for name in COMPILER)
    given = os.pathsep.join(map(str, [*classpath, *kotlin_libraries()]))
    words = ("-no-jdk", "-no-stdlib", "-no-reflect", "-Werror", "-jvm-target", "1.8", "-classpath", given)
    main = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler"
    return run(("java", "-classpath", compiler, main, *words, "-d", destination, source), timeout_seconds=300)


def _root() -> Path:
    folder = cache_folder("test-roots") / f"{SUITE}-kotlin-{LAYOUT}"
    publish_folder(folder, _fetch)
    return folder


def _fetch(folder: Path) -> None:
    """Keep the jars that are wanted: a tenth of what the packages hold."""

    def accept(_package: DebianPackage, file: Path) -> None:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            done = run(("dpkg-deb", "--extract", file, work))
            assert done.returncode == 0, done.stderr
            for path in sorted((Path(work) / "usr" / "share" / "java").iterdir()):
                if path.name in {*COMPILER, *LIBRARIES}:
                    shutil.copyfile(path, folder / path.name)

    fetch_packages(PackageRequest(names=PACKAGES, suite=SUITE, architecture="all"), accept)
