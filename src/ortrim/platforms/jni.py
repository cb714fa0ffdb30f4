"""The JNI library of the Java API: upstream's C files, compiled and linked without Gradle. Pure."""

from typing import Final

from ortrim.core.plan import BuildJob

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
PROVIDERS: Final = {"nnapi": ("-DUSE_NNAPI=1",)}
"""What the C files know of execution providers beside the CPU's; they add XNNPACK by its name, as a string."""
LINUX_FLAGS: Final = ("-Wl,-z,noexecstack", "-Wl,--build-id=sha1", "-s")


def linker_flags(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's words with which every library of a job's AAR is linked."""
    flags = ("-Wl,-z,noexecstack", *PAGES, "-Wl,--build-id=sha1")
    packed = _packed_relocations(job.android.api) if job.android and job.levers.packing else ()
    return (*flags, *packed)


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


def jni_arguments(job: BuildJob) -> tuple[str, ...]:
    """Return the compiler's arguments for the JNI library beside a job's own library, but for sources and output.

    For Android the symbols stay for `finishing`; elsewhere nobody asks for them.
    """
    providers = job.android.providers if job.android else ()
    return (
        *("-std=c11", "-Os", "-fPIC", "-shared", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"),
        *(flag for provider in providers for flag in PROVIDERS.get(provider, ())),
        *(f"-I{folder}" for folder in INCLUDES),
        *("-Wl,--gc-sections", f"-Wl,-soname,{BINDING}"),
        *(linker_flags(job) if job.android else LINUX_FLAGS),
    )


def config_header(ort_version: str) -> str:
    """Return the text of `onnxruntime_config.h`."""
    return f'#pragma once\n#define ORT_VERSION "{ort_version}"\n'
