"""Platforms say *what* to build: arguments, outputs, assembly. One module each, the same names in each, pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, Protocol

from ortrim.build.plan import AssemblyJob, BuildJob
from ortrim.platforms import linux
from ortrim.platforms.android import platform as android_platform
from ortrim.platforms.apple import platform as apple_platform
from ortrim.spec.targets import OperatingSystem


class PlatformModule(Protocol):
    """What each module of this package offers."""

    def build_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return upstream's `build.py` arguments, paths symbolic as `core.plan` describes."""

    def runner_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return the compiler's arguments that make the runner of a job's library."""

    def finishing(self, job: BuildJob) -> tuple[tuple[str, ...], ...]:
        """Return the commands that follow upstream's build, each its words."""

    def expected_outputs(self, job: BuildJob) -> tuple[PurePosixPath, ...]:
        """Return the files that are in the build folder in the end, the library first."""

    def assembly(self, jobs: Sequence[BuildJob]) -> AssemblyJob | None:
        """Return the job that joins the outputs of a plan's jobs for the platform into one package, if it has such."""


PLATFORMS: Final[dict[OperatingSystem, PlatformModule]] = {
    OperatingSystem.LINUX: linux,
    OperatingSystem.ANDROID: android_platform,
    OperatingSystem.IOS: apple_platform,
    OperatingSystem.MACOS: apple_platform,
}
