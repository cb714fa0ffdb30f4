"""The JNI library, through which the Java API reaches a built library: a few C files, compiled as the job's own."""

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.artifacts import JobResult
from ortrim.core.plan import BuildJob, digest
from ortrim.errors import BuildError, StorageError
from ortrim.executors.build_log import first_error, remedy
from ortrim.executors.paths import JobPaths
from ortrim.executors.places import HERE, Place, finished
from ortrim.executors.trees import shared_zig
from ortrim.executors.workspace import Inputs, job_environment, prepare_workspace
from ortrim.platforms.jni import BINDING, CONFIG_HEADER, config_header, jni_arguments
from ortrim.storage.cache import cache_folder
from ortrim.storage.records import cached_folder
from ortrim.tools.javac import Jdk, compile_java

JAVA: Final = "onnxruntime/java/src/main"
SYMBOLS: Final = f"{BINDING}.sym"
STRIPS: Final = (("--strip-all", BINDING), ("--strip-debug", SYMBOLS))
"""What becomes of the library that was linked: one to ship and one for who reads crashes, as the runtime's own."""


@dataclass(frozen=True, kw_only=True)
class JniLibrary:
    """A JNI library, and the same with its symbols; None where the toolchain keeps none."""

    library: Path
    symbols: Path | None


def build_jni_library(job: BuildJob, result: JobResult, inputs: Inputs, jdk: Jdk, place: Place = HERE) -> JniLibrary:
    """Compile the JNI library beside a finished build, or return what was compiled of it before.

    Raises `BuildError` (`jni-not-compiled`, `jni-headers-missing`, and `java-not-compiled` as `compile_java` does),
    what `prepare_workspace` raises, and as `jni_library_in` does.
    """

    def fill(destination: Path) -> None:
        # Not in the system's temporary folder, from which programs may not be allowed to run.
        with shared_zig(job.toolchain) as zig:
            paths = prepare_workspace(destination / "work", inputs, job.toolchain, zig=zig)
            _write_headers(job, paths, jdk)
            _compile(job, result.library, paths, place)
        for name in (name for _, name in STRIPS if (paths.build / name).is_file()):
            (paths.build / name).rename(destination / name)
        shutil.rmtree(destination / "work")

    folder = finished_jni(job, jdk)
    cached_folder(folder, fill)
    return jni_library_in(folder)


def finished_jni(job: BuildJob, jdk: Jdk | None = None) -> Path:
    """Return the folder in which the JNI library of a job lies, or will lie.

    For Android it is the same whatever JDK there is: `jni.h` is the NDK's, and of the pinned Java files a kit makes no
    more than the declarations of native methods, whose names and types are JNI's own rules. For other systems `jni.h`
    is that of `jdk`, which is needed then.
    """
    assert job.android or jdk
    headers = () if job.android else tuple(header.read_bytes() for header in _own_headers(jdk))
    parts = (digest(job), *jni_arguments(job), *(hashlib.sha256(text).hexdigest() for text in headers))
    return cache_folder("jni") / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def jni_library_in(folder: Path) -> JniLibrary:
    """Return the JNI library that a finished folder holds. Raises `StorageError` `jni-damaged`."""
    if not (folder / BINDING).is_file():
        hint = f"remove the folder {folder}, then run the same command again"
        raise StorageError("jni-damaged", f"has no {BINDING}", where=str(folder), hint=hint)
    symbols = folder / SYMBOLS
    return JniLibrary(library=folder / BINDING, symbols=symbols if symbols.is_file() else None)


def _own_headers(jdk: Jdk | None) -> Iterator[Path]:
    """Yield the headers of JNI in a kit, in an order of their own."""
    for folder in jdk.includes if jdk else ():
        yield from sorted(folder.glob("jni*.h"))


def _compile(job: BuildJob, library: Path, paths: JobPaths, place: Place) -> None:
    shutil.copyfile(library, paths.build / library.name)
    sources = sorted((paths.sources / JAVA / "native").glob("*.c"))
    linked = "linked.so" if _objcopy(paths).is_file() else BINDING
    arguments = (*paths.resolve_all(jni_arguments(job)), *map(str, sources), library.name, "-o", linked)
    _run(job, paths, place, (str(paths.wrappers / "cc"), *arguments))
    if linked != BINDING:
        for option, name in STRIPS:
            _run(job, paths, place, (str(_objcopy(paths)), option, linked, name))


def _write_headers(job: BuildJob, paths: JobPaths, jdk: Jdk) -> None:
    """Write the headers of native methods, and `jni.h` unless the toolchain has Android's."""
    headers, classes = paths.build / "headers", paths.build / "classes"
    classes.mkdir()
    java = paths.sources / JAVA
    compile_java(
        jdk, sorted(path for name in ("java", "android") for path in (java / name).rglob("*.java")), classes, headers
    )
    (headers / CONFIG_HEADER).write_text(config_header(job.ort_version), encoding="utf-8")
    if job.android is not None:
        return
    for header in _own_headers(jdk):
        shutil.copyfile(header, headers / header.name)
    if not (headers / "jni.h").is_file():
        hint = "install the whole JDK, not its compiler alone"
        raise BuildError("jni-headers-missing", "this JDK has no jni.h", where=str(jdk.javac), hint=hint)


def _objcopy(paths: JobPaths) -> Path:
    return paths.wrappers / "objcopy"


def _run(job: BuildJob, paths: JobPaths, place: Place, command: tuple[str, ...]) -> None:
    environment = job_environment(paths, job.toolchain)
    code, lines = finished(place, command, paths=paths, cwd=paths.build, environment=environment)
    if code != 0:
        why, what = first_error(lines), "the JNI library could not be made"
        raise BuildError("jni-not-compiled", what, where=job.target.identifier, why=why, hint=remedy(why))
