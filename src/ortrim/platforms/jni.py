"""The JNI library of the Java API: upstream's C files, compiled and linked without Gradle. Pure."""

from typing import Final

from ortrim.core.plan import BuildJob
from ortrim.platforms.android import linker_flags

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
