"""Android: one library for each ABI, and one AAR of all. See `platforms.platform.Platform`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.build.execution import Executor, JobPaths
from ortrim.build.plan import AndroidBuild, BuildJob, JobResult
from ortrim.platforms.android.arguments import (
    assembly,
    build_arguments,
    expected_outputs,
    finishing,
    runner_arguments,
)
from ortrim.platforms.android.jni import build_jni_library, find_jdk, finished_jni, jni_library_in
from ortrim.platforms.android.spec import android_of, linkage, problems
from ortrim.platforms.android.toolchains import (
    build_machine,
    installed,
    pinned_sdk,
    require_package_tools,
    require_sdk,
    require_tools,
    sdk_package,
    toolchain,
    toolchain_of,
    warnings,
)
from ortrim.spec.buildspec import BuildSpec, TargetSpec

if TYPE_CHECKING:
    from ortrim.build.container import Images
    from ortrim.platforms.delivery import Packing, Verifying

__all__ = [
    "NAME", "SDK", "TYPES_LEFT_OUT", "assembly", "beside", "build_arguments", "build_machine", "check_beside",
    "compile_beside", "described", "expected_outputs", "finish", "finishing", "images", "installed", "linkage",
    "packing", "pinned_sdk", "problems", "require_package_tools", "require_sdk", "require_tools",
    "runner_arguments", "sdk_package", "toolchain", "toolchain_of", "verifying", "warnings", "with_defaults",
    "with_options", "words_of",
]  # fmt: skip

NAME: Final = "android"
SDK: Final = "ndk"
TYPES_LEFT_OUT: Final = ("float8",)
JNI: Final = "jni"


def with_defaults(_spec: BuildSpec, target: TargetSpec) -> TargetSpec:
    """Return the target: its defaults are the buildspec's."""
    return target


def with_options(job: BuildJob, spec: BuildSpec, target: TargetSpec) -> BuildJob:
    """Return the job with its API level, its C++ library and its execution providers."""
    chosen = android_of(spec, target)
    assert chosen.api is not None
    assert chosen.stl is not None
    providers = tuple(sorted(set(chosen.providers or ())))
    return replace(job, android=AndroidBuild(api=chosen.api, stl=chosen.stl, providers=providers))


def described(job: BuildJob) -> tuple[tuple[str, str], ...]:
    """Return the API level, the C++ library and the execution providers."""
    assert job.android is not None
    providers = ", ".join(("CPU", *job.android.providers))
    return ((NAME, f"API level {job.android.api}, {job.android.stl}, providers: {providers}"),)


def words_of(_job: BuildJob) -> Mapping[str, str]:
    """Return nothing: the API level is a number, and the NDK's version the toolchain's."""
    return {}


def finish(_job: BuildJob, _paths: JobPaths) -> None:
    """Leave the library as the finishing commands made it."""


def compile_beside(job: BuildJob, result: JobResult, executor: Executor) -> None:
    """Compile the JNI library. Raises as `build_jni_library` and `find_jdk` do."""
    build_jni_library(job, result, executor, find_jdk())


def beside(job: BuildJob) -> Mapping[str, Path]:
    """Return the folder of the JNI library."""
    return {JNI: finished_jni(job)}


def check_beside(folder: Path) -> None:
    """Refuse a folder without a JNI library. Raises `StorageError` `jni-damaged`."""
    jni_library_in(folder)


def packing() -> "Packing":
    """Return the module that makes packages."""
    from ortrim.platforms.android import delivery  # noqa: PLC0415 - slow to import, and planning needs none of it

    return delivery


def verifying() -> "Verifying":
    """Return the module that knows devices."""
    from ortrim.platforms.android import device_rules  # noqa: PLC0415 - slow to import, and planning needs none of it

    return device_rules


def images() -> "Images":
    """Return the module that knows container images."""
    from ortrim.platforms.android import image  # noqa: PLC0415 - slow to import, and planning needs none of it

    return image
