"""What a platform provides after the build: how packages are made and verified. See `platforms.platform.Platform`."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ortrim.base.console import Step
from ortrim.binaries.elf import LibrarySize
from ortrim.buildspec.buildspec import IN_PLACE
from ortrim.buildspec.targets import Architecture, Target
from ortrim.compiling.plan import AssemblyJob, BuildJob
from ortrim.devices.device import ProgramDevice
from ortrim.devices.emulators import DeviceRules
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.ort_format import misaligned_tensors
from ortrim.package.manifest import PackageInputs
from ortrim.parity.measurements import Gate
from ortrim.verify.gates import check_tensors
from ortrim.verify.measure import Baseline

if TYPE_CHECKING:
    from ortrim.compiling.native import Executor


@dataclass(frozen=True, kw_only=True)
class Packaging:
    """What one package is made of and where: a part for each of its targets, in the order of the plan.

    `sources` is the folder of the source tree, `folder` the package's; `assembly` joins the parts, None where a target
    is packaged by itself. `executor_of` gives what compiles for a job.
    """

    parts: tuple[PackageInputs, ...]
    sources: Path
    folder: Path
    assembly: AssemblyJob | None
    executor_of: "Callable[[BuildJob], Executor]"
    step: Step


class Verifying(DeviceRules):
    """How what was built for a platform is run, and what it is compared with."""

    def needs_device(self) -> bool:
        """Whether a build is refused when no device would run its library, rather than its report saying so."""
        return False

    def nowhere(self, target: Target) -> str:
        """Say that a library was run nowhere, and why."""
        return "its library was not run: no device was given, such as --device adb or --device devicectl"

    def open_host(self, target: Target, cores: Sequence[int]) -> ProgramDevice:
        """Return this machine, which `runs_here` said runs a target's programs."""
        raise LookupError(f"this machine does not run {target.identifier}")

    def require_fitting(self, device: ProgramDevice, target: Target, job: BuildJob | None) -> None:
        """Refuse a device that cannot run what was built and does not say so itself. Raises `VerifyError`."""

    def baseline_platforms(self, target: Target) -> tuple[str, ...]:
        """Return the platforms of the wheel that `baseline` takes the library from, beside the converter's own."""
        return ()

    @abstractmethod
    def baseline(self, job: BuildJob, runtime: FullRuntime, requirements: str | None) -> tuple[Baseline, LibrarySize]:
        """Return the official library for a target, and its size; `requirements` are those of the pinned converter."""


def tensor_gates(part: PackageInputs) -> tuple[Gate, ...]:
    """Return the gate of the tensors' places for processors that fault where others are only slower."""
    if part.job.target.architecture is not Architecture.ARM:
        return ()
    return tuple(
        check_tensors(model.name, misaligned_tensors(model.path), in_place=IN_PLACE in plan.session.configuration)
        for model, plan in zip(part.models, part.plan.models_for(part.job.target), strict=True)
    )
