"""From a finished build for Linux to an archive that is fit to ship, and what it holds."""

from pathlib import Path

from ortrim.binaries.archives import archive_members
from ortrim.binaries.elf import read_library
from ortrim.binaries.elf_objects import visible_symbols
from ortrim.binaries.libraries import LibraryFacts
from ortrim.build.plan import ARCHIVE, BuildJob, Package
from ortrim.build.trees import LIBRARY
from ortrim.package.manifest import PackageInputs
from ortrim.package.package import make_package
from ortrim.platforms.delivery import Packaging, tensor_gates
from ortrim.size.library import library_size
from ortrim.verify.gates import check_archive, check_library
from ortrim.verify.measurements import Gate
from ortrim.verify.verification import Delivery


def package(packaging: Packaging) -> list[Delivery]:
    """Make the archive of one target. Raises as `make_package` does."""
    return [delivery(part, make_package(part, packaging.folder)) for part in packaging.parts]


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
