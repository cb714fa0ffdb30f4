"""What Linux provides after the build: an archive that is fit to ship, and the machines that run its library."""

import platform
from collections.abc import Sequence
from pathlib import Path

from ortrim.base.tools import EMULATIONS, Emulation
from ortrim.binaries.elf import LibraryFacts, LibrarySize, read_library, take_apart
from ortrim.binaries.objects import archive_members, visible_symbols
from ortrim.buildspec.targets import Target
from ortrim.compiling.plan import ARCHIVE, SYMBOLS, BuildJob, Package
from ortrim.compiling.size.library import library_size
from ortrim.compiling.trees import LIBRARY
from ortrim.devices import kinds
from ortrim.devices.device import ProgramDevice
from ortrim.devices.emulators import DARWIN, default_emulators, emulator_kinds, has_processor_of
from ortrim.devices.host import Host
from ortrim.models.full_runtime import WHEEL_PLATFORMS, FullRuntime, foreign_library
from ortrim.package.manifest import PackageInputs
from ortrim.package.package import make_package
from ortrim.parity.measurements import Gate
from ortrim.platforms.delivery import Packaging, Verifying, tensor_gates
from ortrim.verify.gates import check_archive, check_library
from ortrim.verify.measure import NO_SIZE, Baseline, own_baseline
from ortrim.verify.verification import Delivery


def keep_symbols(linked: Path, folder: Path) -> None:
    """Leave in a folder what ships of a linked library, and its symbols apart. Raises as `take_apart` does."""
    take_apart(linked, folder / LIBRARY, folder / SYMBOLS)


def deliver(packaging: Packaging) -> list[Delivery]:
    """Make the archive of one target. Raises as `make_package` does."""
    return [delivery(part, make_package(part, packaging.folder, packaging.step.note)) for part in packaging.parts]


def delivery(part: PackageInputs, package: Package) -> Delivery:
    """Return what the package holds; a static library is sized by the shared one of the same objects.

    An archive's own bytes are relocations and names as well, which do not come into the program that links it.
    """
    job, result = part.job, part.result
    delivered = package.folder / "lib" / (ARCHIVE if job.linkage == "static" else LIBRARY)
    shared = result.library if job.linkage == "static" else delivered
    facts = read_library(shared)
    return Delivery(
        archive=package.archive,
        library=delivered,
        facts=facts,
        gates=(*_gates(job, facts), *_static_gates(job, delivered, facts), *tensor_gates(part)),
        size=library_size(shared, result.link_map),
    )


def _gates(job: BuildJob, facts: LibraryFacts) -> tuple[Gate, ...]:
    return check_library(
        facts,
        architecture=job.target.architecture,
        minimum_glibc=job.minimum_glibc,
        compiler_libraries=job.toolchain.kind != "zig",
    )


def _static_gates(job: BuildJob, delivered: Path, shared: LibraryFacts) -> tuple[Gate, ...]:
    if job.linkage != "static":
        return ()
    return tuple(check_archive(*visible_symbols(content, name), shared) for name, content in archive_members(delivered))


class LinuxMachines(Verifying):
    """This machine, emulators and real devices run programs for Linux; what runs apps alone does not."""

    def runs_here(self, target: Target) -> bool:
        """Whether this is a Linux machine with such a processor."""
        return platform.system() != DARWIN and has_processor_of(target)

    def emulation_of(self, target: Target) -> Emulation | None:
        """Return the emulation of the target's architecture."""
        return EMULATIONS.get(target.architecture.value)

    def kinds_for(self, target: Target, cpu: str = "") -> str:
        """Name this machine, emulators and real devices, as far as they run the target's programs."""
        here = (kinds.HOST.name,) if self.runs_here(target) else ()
        return (
            ", ".join((*here, *emulator_kinds(self.emulation_of(target), cpu), kinds.ADB.name))
            + f" or {kinds.SSH.form}"
        )

    def default_devices(self, target: Target, cpu: str = "") -> tuple[str, ...]:
        """Return this machine, else emulators."""
        emulation = self.emulation_of(target)
        if self.runs_here(target):
            return (kinds.HOST.name,)
        return default_emulators(emulation, cpu) if emulation else ()

    def needs_device(self) -> bool:
        """Return True: nothing would be proved of a library that was run nowhere, and an emulator is soon installed."""
        return True

    def open_host(self, target: Target, cores: Sequence[int]) -> ProgramDevice:
        """Return this machine. Raises as `Host` does."""
        return Host(tuple(cores))

    def baseline_platforms(self, target: Target) -> tuple[str, ...]:
        """Return those of another machine's wheel."""
        return () if self.runs_here(target) else WHEEL_PLATFORMS.get(target.architecture.value, ())

    def baseline(self, job: BuildJob, runtime: FullRuntime, requirements: str | None) -> tuple[Baseline, LibrarySize]:
        """Return the official library for the target's own machine, without one where there is no such wheel."""
        if self.runs_here(job.target):
            found = own_baseline(runtime)
        else:
            architecture = job.target.architecture.value
            library = foreign_library(runtime.version, requirements, architecture)
            name = f"onnxruntime {runtime.version} (official wheel for {architecture})"
            none = f"none: there is no official wheel for {architecture}"
            found = Baseline(library=library, name=name if library else none)
        return found, NO_SIZE if found.library is None else library_size(found.library, None)
