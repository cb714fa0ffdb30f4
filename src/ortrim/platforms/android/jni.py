"""The JNI library, through which the Java API reaches a built library: a few C files, compiled as the job's own."""

import hashlib
import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.base.cache import cache_folder
from ortrim.base.command import run
from ortrim.base.tools import install_command
from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.targets import Architecture
from ortrim.compiling.plan import AndroidBuild, BuildJob, JobResult, digest
from ortrim.compiling.upstream import first_error, remedy
from ortrim.compiling.workspace import ExecutionEnvironment, JobPaths
from ortrim.errors import BuildError, StorageError, ToolError

if TYPE_CHECKING:
    from ortrim.compiling.executor import Executor

PAGES: Final = ("-Wl,-z,max-page-size=16384", "-Wl,-z,common-page-size=16384")
"""The first aligns segments; the second is where lld ends RELRO, which Android looks at where pages have 16 KB."""
BINDING: Final = "libonnxruntime4j_jni.so"
CONFIG_HEADER: Final = "onnxruntime_config.h"
"""CMake makes it of what it finds of the compiler; the C files take the version from it and nothing else."""
INCLUDES: Final = (
    "${build}/headers",
    "${sources}/onnxruntime/include",
    "${sources}/onnxruntime/include/onnxruntime/core/session",
    "${sources}/onnxruntime/orttraining/orttraining/training_api/include",
)
"""The first is for what is made: the headers of javac, `CONFIG_HEADER`, and `jni.h` where the system has none."""
LINUX_FLAGS: Final = ("-Wl,-z,noexecstack", "-Wl,--build-id=sha1", "-s")


ONE_SEGMENT_BELOW: Final = 30
"""The first level whose unwinder takes libraries whose code and constants are segments of their own; older ones end a
stack there (https://github.com/android/ndk/issues/1196 and 1589, by which the NDK's own CMake files go)."""
ERRATUM: Final = "-Wl,--fix-cortex-a53-843419"
"""As clang's driver has it for Android: a sequence of instructions that Cortex-A53 mistakes is taken apart."""
THREAD_VARIABLES_SINCE: Final = 29
"""The first level whose loader knows threads' variables (bionic's android-changes-for-ndk-developers.md)."""
EMULATED: Final = "-Wl,-mllvm,-emulated-tls"
"""What clang's driver tells a linker that compiles, if it is told `-flto`, too; lld does not know it by itself."""


def android_build(job: BuildJob) -> AndroidBuild:
    """Return what a job for Android is built for."""
    assert job.android is not None
    return job.android


def linker_flags(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's words with which every library of a job's AAR is linked."""
    api, flags = android_build(job).api, ("-Wl,-z,noexecstack", *PAGES, "-Wl,--build-id=sha1")
    packed = _packed_relocations(api) if job.build_options.packed_relocations else ()
    together = ("-Wl,--no-rosegment",) if api < ONE_SEGMENT_BELOW else ()
    erratum = (ERRATUM,) if job.target.architecture is Architecture.ARM64 else ()
    emulated = (EMULATED,) if api < THREAD_VARIABLES_SINCE and job.build_options.lto else ()
    return (*flags, *packed, *together, *erratum, *emulated)


def _packed_relocations(api: int) -> tuple[str, ...]:
    """Return what packs relocations in the way that the loader of an API level understands.

    Android's own form came with 23, RELR with 28, there under Android's own tags, and with 30 under the standard ones
    (bionic's android-changes-for-ndk-developers.md; clang's driver does the same from LLVM 23 on).
    """
    if api < 23:
        return ()
    if api < 28:
        return ("-Wl,--pack-dyn-relocs=android",)
    tags = ("-Wl,--use-android-relr-tags",) if api < 30 else ()
    return ("-Wl,--pack-dyn-relocs=android+relr", *tags)


def jni_compiling() -> tuple[str, ...]:
    """Return the compiler's arguments for the sources of the JNI library."""
    return (
        *("-std=c11", "-Os", "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"),
        *(f"-I{folder}" for folder in INCLUDES),
    )


def jni_linking(job: BuildJob) -> tuple[str, ...]:
    """Return the wrapper that links the JNI library and its arguments, but for files.

    For Android it is linked as the job's own library is, by zig past its driver, and the symbols stay for
    `take_apart` and `STRIPS`; elsewhere nobody asks for them.
    """
    common = ("-shared", "-Wl,--gc-sections", f"-Wl,-soname,{BINDING}")
    if job.android is None:
        return ("cc", *common, *LINUX_FLAGS)
    if job.toolchain.kind == "zig":
        past = ("-Wl,--no-undefined", "-Wl,--strip-debug", "-nostdlib++", PAST_DRIVER)
        return ("c++", *common, *linker_flags(job), *past)
    return ("cc", *common, *linker_flags(job))


RELEASE: Final = "8"
"""Java 8: the newest whose class files every D8 reads, the API that Android has from the start, and what upstream's own
Gradle files compile the same sources for on a desktop. A newer javac warns of its age, which `-options` silences."""
VERSION: Final = re.compile(r"javac (\d+[\w.+-]*)")
OLDEST: Final = 9
"""The first that knows `--release`."""
PACKAGE: Final = "default-jdk-headless"
ANSWER_SECONDS: Final = 30
MAC_STAND_IN: Final = "/usr/bin/javac"
"""Every Mac has it, with a JDK or without: it starts the compiler of the one that `MAC_HOME` names (java_home(1))."""
MAC_HOME: Final = "/usr/libexec/java_home"


@dataclass(frozen=True, kw_only=True)
class Jdk:
    """A Java development kit: its compiler, the compiler's version, and the folders that have `jni.h`."""

    javac: Path
    version: str

    @property
    def includes(self) -> tuple[Path, ...]:
        """Return the folders of `jni.h` and of what it includes; none in a kit that came without them."""
        folder = self.javac.resolve().parents[1] / "include"
        return (folder, *sorted(path.parent for path in folder.glob("*/jni_md.h"))) if folder.is_dir() else ()


def find_jdk(environment: Mapping[str, str] = os.environ) -> Jdk:
    """Return the kit that `JAVA_HOME` names, else the one on PATH; on a Mac, else the one that is installed there."""
    home, found = environment.get("JAVA_HOME"), _javac(environment)
    hint = f"run: {install_command(PACKAGE)}; or set JAVA_HOME to a JDK"
    if found is None:
        what = "Java's compiler is needed for the classes of an AAR"
        why = f"JAVA_HOME is {home}, and there is no bin/javac in it" if home else "there is no javac on PATH"
        raise ToolError("javac-missing", what, where="javac", why=why, hint=hint)
    version = _version_of(found, hint)
    if int(re.split(r"\D", version)[0]) < OLDEST:
        what = f"version {version} is too old, {OLDEST} or newer is needed"
        raise ToolError("javac-too-old", what, where=found, hint=hint)
    return Jdk(javac=Path(found), version=version)


def jdk_is_here(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether there is a compiler of Java, of whichever version."""
    return _javac(environment) is not None


def chosen_jdk(*, wanted: bool | None, environment: Mapping[str, str] = os.environ) -> Jdk | None:
    """Return the kit that makes the Java API of an AAR; None if none is `wanted`, or nobody says and there is none."""
    if wanted is False or (wanted is None and not jdk_is_here(environment)):
        return None
    return find_jdk(environment)


def compile_java(jdk: Jdk, sources: Sequence[Path], classes: Path, headers: Path) -> None:
    """Compile Java files into the folder `classes`, and write the headers of native methods into `headers`.

    Nothing of the machine gets into the classes: neither paths, nor the time, nor what else is on a class path. Raises
    `BuildError` `java-not-compiled`.
    """
    options = ("-encoding", "UTF-8", "--release", RELEASE, "-Xlint:-options", "-nowarn", "-proc:none", "-implicit:none")
    apart = ("-classpath", str(classes), "-d", str(classes), "-h", str(headers))
    done = run((jdk.javac, *options, *apart, *sources), environment=_environment())
    if done.returncode != 0:
        why = "\n".join((done.stderr or done.stdout).strip().splitlines()[:5])
        hint = f"javac {jdk.version} compiled them; another JDK may do: set JAVA_HOME"
        raise BuildError("java-not-compiled", "the Java API does not compile", where="javac", why=why, hint=hint)


def _javac(environment: Mapping[str, str]) -> str | None:
    home = environment.get("JAVA_HOME")
    found = shutil.which("javac", path=f"{home}/bin" if home else environment.get("PATH"))
    if found != MAC_STAND_IN or platform.system() != "Darwin":
        return found
    named = run((MAC_HOME,), environment=_environment(), timeout_seconds=ANSWER_SECONDS)
    return shutil.which("javac", path=f"{named.stdout.strip()}/bin") if named.returncode == 0 else None


def _version_of(javac: str, hint: str) -> str:
    done = run((javac, "-version"), environment=_environment(), timeout_seconds=ANSWER_SECONDS)
    found = VERSION.search(done.stdout + done.stderr)  # Java 8 tells it on the error stream
    if done.returncode != 0 or found is None:
        why = (done.stderr or done.stdout).strip()[-300:]
        what = f"'javac -version' names no version (exit code {done.returncode})"
        raise ToolError("javac-broken", what, where=javac, why=why, hint=hint)
    return found[1]


def _environment() -> dict[str, str]:
    """Return an environment without `JAVA_TOOL_OPTIONS` and the like, which would change what is compiled."""
    return {"LC_ALL": "C", "PATH": os.environ.get("PATH", os.defpath)}


JAVA: Final = "onnxruntime/java/src/main"
SYMBOLS: Final = f"{BINDING}.sym"
STRIPS: Final = (("--strip-all", BINDING), ("--strip-debug", SYMBOLS))
"""What becomes of the library that was linked: one to ship and one for who reads crashes, as the runtime's own."""


def build_jni_library(job: BuildJob, result: JobResult, executor: "Executor", jdk: Jdk) -> Path:
    """Compile the JNI library beside a finished build, or return what was compiled of it before.

    `SYMBOLS` lie beside it where the toolchain keeps any. Its Java is compiled on this machine, wherever the executor's
    programs run.
    """

    def make(paths: JobPaths, execution: ExecutionEnvironment) -> tuple[Path, ...]:
        _write_headers(job, paths, jdk)
        _compile(job, result.library, paths, execution)
        return tuple(paths.build / name for _, name in STRIPS if (paths.build / name).is_file())

    folder = finished_jni(job, jdk)
    executor.run_beside(job.toolchain, folder, make)
    return jni_library_in(folder)


def finished_jni(job: BuildJob, jdk: Jdk | None = None) -> Path:
    """Return the folder in which the JNI library of a job lies, or will lie.

    For Android it is the same whatever JDK there is: a newer `jni.h` has more functions behind the last and no other
    change, and of the pinned Java files a kit makes no more than the declarations of native methods, whose names and
    types are JNI's own rules. For other systems `jni.h` is that of `jdk`, which is needed then.
    """
    assert job.android or jdk
    headers = () if job.android else tuple(header.read_bytes() for header in _own_headers(jdk))
    words = (*jni_compiling(), *jni_linking(job))
    parts = (digest(job), *words, *(hashlib.sha256(text).hexdigest() for text in headers))
    return cache_folder("jni") / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def jni_library_in(folder: Path) -> Path:
    """Return the JNI library that a finished folder holds. Raises `StorageError` `jni-damaged`."""
    if not (folder / BINDING).is_file():
        hint = f"remove the folder {folder}, then run the same command again"
        raise StorageError("jni-damaged", f"has no {BINDING}", where=str(folder), hint=hint)
    return folder / BINDING


def _own_headers(jdk: Jdk | None) -> Iterator[Path]:
    """Yield the headers of JNI in a kit, in an order of their own."""
    for folder in jdk.includes if jdk else ():
        yield from sorted(folder.glob("jni*.h"))


def _compile(job: BuildJob, library: Path, paths: JobPaths, execution: ExecutionEnvironment) -> None:
    def run(wrapper: str, *words: str) -> None:
        command = (str(paths.wrappers / wrapper), *words)
        code, lines = execution.run(command, paths=paths, toolchain=job.toolchain)
        if code != 0:
            why, what = first_error(lines), "the JNI library could not be made"
            raise BuildError("jni-not-compiled", what, where=job.target.identifier, why=why, hint=remedy(why))

    shutil.copyfile(library, paths.build / library.name)
    sources = sorted((paths.sources / JAVA / "native").glob("*.c"))
    compiling, (linker, *linking) = paths.resolve_all(jni_compiling()), jni_linking(job)
    for source in sources:  # zig's driver makes one object of a call
        run("cc", *compiling, "-c", str(source), "-o", f"{source.stem}.o")
    linked = "linked.so" if job.android else BINDING
    run(linker, *linking, *(f"{source.stem}.o" for source in sources), library.name, "-o", linked)
    if job.toolchain.kind == "ndk":
        for option, name in STRIPS:
            run("objcopy", option, linked, name)
    elif job.android:
        from ortrim.binaries.elf import take_apart  # noqa: PLC0415 - planning reads no library

        take_apart(paths.build / linked, paths.build / BINDING, paths.build / SYMBOLS)


def _write_headers(job: BuildJob, paths: JobPaths, jdk: Jdk) -> None:
    """Write the headers of native methods, and `jni.h` unless the toolchain has Android's."""
    headers, classes = paths.build / "headers", paths.build / "classes"
    classes.mkdir()
    java = paths.sources / JAVA
    sources = sorted(path for name in ("java", "android") for path in (java / name).rglob("*.java"))
    compile_java(jdk, sources, classes, headers)
    version = f'#pragma once\n#define ORT_VERSION "{job.ort_version}"\n'
    (headers / CONFIG_HEADER).write_text(version, encoding="utf-8")
    if job.toolchain.kind == "ndk":
        return
    for header in _own_headers(jdk):
        shutil.copyfile(header, headers / header.name)
    if not (headers / "jni.h").is_file():
        hint = "install the whole JDK, not its compiler alone"
        raise BuildError("jni-headers-missing", "this JDK has no jni.h", where=str(jdk.javac), hint=hint)
