"""What is delivered: the package's library, read and held against what every library must be."""

from pathlib import Path
from typing import Final

from ortrim.binaries.archives import archive_members
from ortrim.binaries.elf import read_library
from ortrim.binaries.merged_object import visible_symbols
from ortrim.binaries.sizes import library_size
from ortrim.core.aar import AbiSize
from ortrim.core.artifacts import JobResult, Package
from ortrim.core.library_facts import LibraryFacts
from ortrim.core.measurements import Comparison, Gate, Verdict
from ortrim.core.plan import ARCHIVE, BuildJob
from ortrim.core.sessions import IN_PLACE
from ortrim.core.targets import ABIS, Architecture
from ortrim.executors.results import LIBRARY
from ortrim.models.alignment import misaligned_tensors
from ortrim.package.android.inputs import companions_of
from ortrim.pipeline.packaging.android import SoundAar
from ortrim.pipeline.planned import Planned
from ortrim.verify.gates import check_archive, check_library, check_tensors
from ortrim.verify.subjects import Delivery

AAR_SIZES: Final = (
    ("libraries of the ABI", "library_bytes"),
    ("libraries in the AAR", "compressed_bytes"),
    ("app's download", "download_bytes"),
)
"""Measures of a report -> what `AbiSize` calls them."""


def linux_delivery(planned: Planned, job: BuildJob, result: JobResult, package: Package) -> Delivery:
    """Return what the package holds; a static library is sized by the shared one of the same objects.

    An archive's own bytes are relocations and names as well, which do not come into the program that links it.
    """
    delivered = package.folder / "lib" / (ARCHIVE if job.linkage == "static" else LIBRARY)
    shared = result.library if job.linkage == "static" else delivered
    facts = read_library(shared)
    return Delivery(
        archive=package.archive,
        library=delivered,
        facts=facts,
        gates=(*_gates(job, facts), *_static_gates(job, delivered, facts), *_model_gates(planned, job)),
        size=library_size(shared, result.link_map),
    )


def android_delivery(planned: Planned, job: BuildJob, result: JobResult, sound: SoundAar) -> Delivery:
    """Return what an AAR holds for one ABI; its gates are those of the whole AAR."""
    sizes = next(size for size in sound.facts.sizes if size.abi == ABIS[job.target.architecture])
    return Delivery(
        archive=sound.package.aar,
        library=result.library,
        facts=read_library(result.library),
        gates=(*sound.gates, *_model_gates(planned, job)),
        size=library_size(result.library, result.link_map),
        sizes=tuple(_size_line(measure, sizes, name) for measure, name in AAR_SIZES),
        companions=companions_of(job, result),
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


def _model_gates(planned: Planned, job: BuildJob) -> tuple[Gate, ...]:
    """Return the gate of the tensors' places for processors that fault where others are only slower."""
    if job.target.architecture is not Architecture.ARM:
        return ()
    both = zip(planned.models.converted, planned.plan.models, strict=True)
    return tuple(
        check_tensors(model.name, misaligned_tensors(model.path), in_place=IN_PLACE in plan.session.configuration)
        for model, plan in both
    )


def _size_line(measure: str, sizes: AbiSize, name: str) -> Comparison:
    """Return a line of the report that tells a size; budgets are for the runtime's library, as on other systems."""
    return Comparison(
        measure=measure,
        model="",
        unit="bytes",
        ours=getattr(sizes, name),
        baseline=None,
        ratio=None,
        spread=None,
        budget=None,
        budget_is_ratio=False,
        verdict=Verdict.NOT_JUDGED,
    )
