"""What Linux provides after the build: an archive that is fit to ship."""

from ortrim.binaries.elf import read_library
from ortrim.binaries.objects import archive_members, visible_symbols
from ortrim.compiling.plan import ARCHIVE, Package
from ortrim.compiling.workspace import LIBRARY
from ortrim.package.manifest import PackageInputs
from ortrim.platforms.platform import tensor_gates
from ortrim.size.library import library_size
from ortrim.verify.gates import check_archive, check_library
from ortrim.verify.target import Delivery


def delivery(part: PackageInputs, package: Package) -> Delivery:
    """Return what the package holds; a static library is sized by the shared one of the same objects.

    An archive's own bytes are relocations and names as well, which do not come into the program that links it.
    """
    job, result = part.job, part.result
    is_static = job.linkage == "static"
    delivered = package.folder / "lib" / (ARCHIVE if is_static else LIBRARY)
    shared = result.library if is_static else delivered
    facts = read_library(shared)
    gates = check_library(
        facts,
        architecture=job.target.architecture,
        minimum_glibc=job.minimum_glibc,
        compiler_libraries=job.toolchain.kind != "zig",
    )
    members = archive_members(delivered) if is_static else ()
    hidden = tuple(check_archive(*visible_symbols(content, name), facts) for name, content in members)
    return Delivery(
        archive=package.archive,
        library=delivered,
        facts=facts,
        gates=(*gates, *hidden, *tensor_gates(part)),
        size=library_size(shared, result.link_map),
    )
