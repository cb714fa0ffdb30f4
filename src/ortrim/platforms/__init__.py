"""Platforms say *what* to build: arguments, outputs, assembly. One module each, the same names in each, pure."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, Protocol

from ortrim.core.plan import AssemblyJob, BuildJob
from ortrim.core.targets import OperatingSystem
from ortrim.platforms import linux


class PlatformModule(Protocol):
    """What each module of this package offers."""

    def build_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return upstream's `build.py` arguments, paths symbolic as `core.plan` describes."""

    def runner_arguments(self, job: BuildJob) -> tuple[str, ...]:
        """Return the compiler's arguments that make the runner of a job's library."""

    def expected_outputs(self, job: BuildJob) -> tuple[PurePosixPath, ...]:
        """Return the files that the build must leave in its build folder, the library first."""

    def assembly(self, jobs: Sequence[BuildJob]) -> AssemblyJob | None:
        """Return the job that joins several targets' outputs into one file, if the platform has such a thing."""


PLATFORMS: Final[dict[OperatingSystem, PlatformModule]] = {OperatingSystem.LINUX: linux}
