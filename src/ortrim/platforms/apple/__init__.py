"""Apple's systems: one library for each architecture of a platform, and one xcframework of all.

See `platforms.platform.Platform`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.build.execution import Executor, JobPaths
from ortrim.build.plan import AppleBuild, BuildJob, JobResult
from ortrim.platforms.apple.arguments import (
    assembly,
    build_arguments,
    expected_outputs,
    finishing,
    runner_arguments,
)
from ortrim.platforms.apple.spec import apple_of, deployment_target_of, linkage, problems
from ortrim.platforms.apple.toolchains import (
    build_machine,
    installed,
    pinned_sdk,
    require_sdk,
    require_tools,
    toolchain,
    toolchain_of,
    with_defaults,
)
from ortrim.platforms.apple.zig_toolchain import is_cross_built, offer_public_api_alone
from ortrim.spec.buildspec import BuildSpec, TargetSpec
from ortrim.spec.targets import Target

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

NAME: Final = "apple"
SDK: Final = "xcode"
TYPES_LEFT_OUT: Final = ()


def with_options(job: BuildJob, spec: BuildSpec, target: TargetSpec) -> BuildJob:
    """Return the job with its deployment target and its execution providers; see `with_defaults`."""
    minimum = deployment_target_of(spec, target)
    assert minimum is not None
    providers = tuple(sorted(set(apple_of(spec, target).providers or ())))
    return replace(job, apple=AppleBuild(deployment_target=minimum, providers=providers))


def described(_job: BuildJob) -> tuple[tuple[str, str], ...]:
    """Return nothing: the triple has it all."""
    return ()


def words_of(job: BuildJob) -> Mapping[str, str]:
    """Return the deployment target, which is part of the triple."""
    return {"apple.deployment_target": job.apple.deployment_target if job.apple else ""}


def sdk_package(_version: str) -> str:
    """Return nothing: Xcode comes with the machine."""
    return ""


def require_package_tools(_targets: Sequence[Target]) -> None:
    """Refuse nothing: a package is put together without Apple's tools."""


def warnings(_spec: BuildSpec, _targets: Sequence[TargetSpec]) -> tuple[str, ...]:
    """Return nothing."""
    return ()


def finish(job: BuildJob, paths: JobPaths) -> None:
    """Leave a cross-built library the names that upstream has it export. Raises as `offer_public_api_alone` does."""
    if is_cross_built(job):
        offer_public_api_alone(job, paths)


def compile_beside(_job: BuildJob, _result: JobResult, _executor: Executor) -> None:
    """Compile nothing: apps compile the Objective-C API."""


def beside(_job: BuildJob) -> Mapping[str, Path]:
    """Return nothing."""
    return {}


def check_beside(_folder: Path) -> None:
    """Refuse nothing."""


def packing() -> "Packing":
    """Return the module that makes packages."""
    from ortrim.platforms.apple import delivery  # noqa: PLC0415 - slow to import, and planning needs none of it

    return delivery


def verifying() -> "Verifying":
    """Return the module that knows devices."""
    from ortrim.platforms.apple import device_rules  # noqa: PLC0415 - slow to import, and planning needs none of it

    return device_rules


def images() -> "Images":
    """Return the module that knows container images."""
    from ortrim.platforms.apple import image  # noqa: PLC0415 - slow to import, and planning needs none of it

    return image
