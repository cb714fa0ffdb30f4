"""What the packages of targets are made from: their builds, models and licences."""

from pathlib import Path

from ortrim.core.artifacts import JobResult
from ortrim.core.plan import BuildJob
from ortrim.package.inputs import ComponentLicence, PackageInputs
from ortrim.pins.tools import tool_requirements
from ortrim.pipeline.planned import Planned
from ortrim.sources.fetch import sound_sources
from ortrim.sources.tree import licences
from ortrim.toolchains.licences import RUNTIME_LICENCES
from ortrim.tools.environments import packages_folder


def package_inputs(planned: Planned, job: BuildJob, result: JobResult) -> PackageInputs:
    """Return what the package of a target is made from, and what its part of an assembly is."""
    upstream = sound_sources(planned.sources) / "onnxruntime"
    return PackageInputs(
        plan=planned.plan,
        job=job,
        result=result,
        models=planned.models.converted,
        operators=planned.models.operators,
        licence=upstream / "LICENSE",
        notices=upstream / "ThirdPartyNotices.txt",
        licences=tuple(
            ComponentLicence(component=component, identifier=identifier, path=path)
            for component, identifier, path in (*_source_licences(planned, job), *_toolchain_licences(job))
        ),
    )


def _source_licences(planned: Planned, job: BuildJob) -> tuple[tuple[str, str, Path], ...]:
    """Return the licences of what the job compiles, which may be less than was fetched."""
    compiled = {source.name for source in job.sources}
    return tuple(entry for entry in licences(planned.sources) if entry[0] in compiled)


def _toolchain_licences(job: BuildJob) -> tuple[tuple[str, str, Path], ...]:
    """Return the licences of what the compiler itself puts into the library; the system's gcc puts it beside."""
    if job.toolchain.kind not in RUNTIME_LICENCES:
        return ()
    tools = packages_folder("tools", tool_requirements())
    return tuple(
        (component, identifier, tools / text) for component, identifier, text in RUNTIME_LICENCES[job.toolchain.kind]
    )
