"""Linux: one library, shared or static, for each architecture and C library. See `platforms.platform.Platform`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ortrim.build.execution import Executor, JobPaths
from ortrim.build.plan import BuildJob, JobResult, Toolchain
from ortrim.pins.runtime import RuntimePins
from ortrim.platforms.linux.arguments import assembly, build_arguments, expected_outputs, finishing, runner_arguments
from ortrim.platforms.linux.spec import linkage, problems
from ortrim.platforms.linux.toolchains import build_machine, toolchain, toolchain_of
from ortrim.platforms.platform import Compilation
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

NAME: Final = "linux"
SDK: Final = ""
TYPES_LEFT_OUT: Final = ()


def with_defaults(_spec: BuildSpec, target: TargetSpec) -> TargetSpec:
    """Return the target: a buildspec says all of it."""
    return target


def with_options(job: BuildJob, _spec: BuildSpec, _target: TargetSpec) -> BuildJob:
    """Return the job: it has no options of Linux alone."""
    return job


def described(_job: BuildJob) -> tuple[tuple[str, str], ...]:
    """Return nothing."""
    return ()


def words_of(_job: BuildJob) -> Mapping[str, str]:
    """Return nothing: the glibc and the toolchain's version are every job's."""
    return {}


def require_tools(_spec: BuildSpec, _targets: Sequence[TargetSpec], _asked: Compilation) -> None:
    """Refuse nothing: the toolchain comes with ortrim, and the system's was found when it was asked for its version."""


def warnings(_spec: BuildSpec, _targets: Sequence[TargetSpec]) -> tuple[str, ...]:
    """Return nothing."""
    return ()


def installed(_toolchain: Toolchain, _named: Path | None) -> Mapping[str, Path]:
    """Return nothing: no toolchain of Linux is an SDK."""
    return {}


def require_sdk(_version: str, _targets: Sequence[Target]) -> None:
    """Refuse nothing."""


def sdk_package(_version: str) -> str:
    """Return nothing."""
    return ""


def require_package_tools(_targets: Sequence[Target]) -> None:
    """Refuse nothing."""


def pinned_sdk(_pins: RuntimePins) -> str | None:
    """Return None."""
    return None


def finish(_job: BuildJob, _paths: JobPaths) -> None:
    """Leave the library as it was linked."""


def compile_beside(_job: BuildJob, _result: JobResult, _executor: Executor) -> None:
    """Compile nothing."""


def beside(_job: BuildJob) -> Mapping[str, Path]:
    """Return nothing."""
    return {}


def check_beside(_folder: Path) -> None:
    """Refuse nothing."""


def packing() -> "Packing":
    """Return the module that makes packages."""
    from ortrim.platforms.linux import delivery  # noqa: PLC0415 - slow to import, and planning needs none of it

    return delivery


def verifying() -> "Verifying":
    """Return the module that knows devices."""
    from ortrim.platforms.linux import device_rules  # noqa: PLC0415 - slow to import, and planning needs none of it

    return device_rules


def images() -> "Images":
    """Return the module that knows container images."""
    from ortrim.platforms.linux import image  # noqa: PLC0415 - slow to import, and planning needs none of it

    return image
