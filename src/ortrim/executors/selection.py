"""Which units a build compiles: what the index says the link takes, told to CMake through `units.cmake`."""

from collections.abc import Iterable
from typing import Final

from ortrim.core.plan import BuildJob
from ortrim.core.unit_paths import compiled_names
from ortrim.core.units import Variant
from ortrim.executors.hot_kernels import cold_kernel_sources
from ortrim.executors.paths import CONFIGURATION, JobPaths
from ortrim.executors.type_control import type_folder, typed_units
from ortrim.platforms.providers import providers_of
from ortrim.storage.files import write_if_changed

SELECTION: Final = "selection.cmake"


def variant_of(job: BuildJob) -> Variant:
    """Return what an index must have been made with to serve a job.

    Execution providers bring sources of their own into the build, so that they count among the toolchain's words; so
    do the types that are left out, since sources define less without them. What sources with all types need and define
    is more than any do with fewer, so that the index of all types serves every job.
    """
    without = ("without", *job.without_types) if job.without_types else ()
    return Variant(
        ort_version=job.ort_version,
        target=job.target.identifier,
        toolchain="-".join((job.toolchain.kind, *providers_of(job), *without)),
        exceptions=job.exceptions,
    )


def write_selection(paths: JobPaths, units: Iterable[str], hot_operators: Iterable[str] = ()) -> None:
    """Write what `units.cmake` reads: the units to compile, by their symbolic paths; none means all.

    Kernels that no hot operator has use for are named as cold; none are without hot operators.
    """
    typed = typed_units(paths)
    lists = (
        ("ORTRIM_UNITS", tuple(paths.resolve(name) for unit in units for name in compiled_names(unit, CONFIGURATION))),
        ("ORTRIM_TYPED_UNITS", tuple(map(str, typed))),
        ("ORTRIM_TYPE_FOLDERS", tuple(str(type_folder(paths, unit)) for unit in typed)),
        ("ORTRIM_COLD_KERNELS", tuple(map(str, cold_kernel_sources(paths, hot_operators)))),
    )
    write_if_changed(paths.hooks / SELECTION, "".join(_cmake_list(name, values) for name, values in lists))


def _cmake_list(name: str, values: Iterable[str]) -> str:
    return f"set({name}\n" + "".join(f"  [==[{value}]==]\n" for value in values) + ")\n"
