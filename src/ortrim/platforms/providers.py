"""Execution providers beside the CPU's: what each asks of upstream's build, and what keeps it from working. Pure.

Facts: upstream's `cmake/onnxruntime_providers_nnapi.cmake`, `cmake/external/xnnpack.cmake` and
`onnxruntime/core/providers/` of 1.21.0.
"""

from collections.abc import Iterable
from typing import Final

from ortrim.core.plan import BuildJob, PlannedModel
from ortrim.core.targets import Architecture, Target
from ortrim.errors import PlanError

FLAGS: Final = {"nnapi": "--use_nnapi", "xnnpack": "--use_xnnpack"}

XNNPACK_SOURCES: Final = {"fxdiv": "FXDIV", "pthreadpool": "PTHREADPOOL", "xnnpack": "GOOGLEXNNPACK"}
"""Name in the source tree -> name in CMake's FETCHCONTENT_SOURCE_DIR_<NAME>; cpuinfo, which it needs too, apart."""
ARM64_SOURCES: Final = {"kleidiai": "KLEIDIAI"}
FUSING_LEVELS: Final = ("extended", "all")


def providers_of(job: BuildJob) -> tuple[str, ...]:
    """Return a job's execution providers beside the CPU's."""
    return job.android.providers if job.android else ()


def provider_flags(job: BuildJob) -> tuple[str, ...]:
    """Return the arguments of `build.py` that compile a job's execution providers in."""
    return tuple(FLAGS[name] for name in providers_of(job))


def minimal_build(job: BuildJob) -> tuple[str, ...]:
    """Return the kind of minimal build: a provider takes nodes and turns layouts around in an extended one alone.

    NNAPI's CMake file stops without it; XNNPACK's does not, and the provider would get no node.
    """
    return ("--minimal_build", "extended") if providers_of(job) else ("--minimal_build",)


def provider_definitions(job: BuildJob) -> tuple[str, ...]:
    """Return the CMake definitions that say where the sources of a job's providers are."""
    names = _xnnpack_sources(job.target) if "xnnpack" in providers_of(job) else {}
    return tuple(f"FETCHCONTENT_SOURCE_DIR_{name}=${{sources}}/{folder}" for folder, name in names.items())


def provider_sources(target: Target, providers: Iterable[str]) -> frozenset[str]:
    """Return the sources that providers need beside ONNX Runtime's own."""
    return frozenset((*_xnnpack_sources(target), "cpuinfo")) if "xnnpack" in providers else frozenset()


def is_provider_source(name: str) -> bool:
    """Whether a source is of use to a provider alone."""
    return name in XNNPACK_SOURCES or name in ARM64_SOURCES


def require_providers(job: BuildJob, models: Iterable[PlannedModel]) -> None:
    """Refuse providers that could not do their work.

    Raises `PlanError`: `provider-needs-runtime-style`, `provider-unsupported` or `provider-sources-missing`.
    """
    for provider in providers_of(job):
        for model in models:
            _require_style(job, provider, model)
    if "xnnpack" in providers_of(job):
        _require_xnnpack(job)


def _require_style(job: BuildJob, provider: str, model: PlannedModel) -> None:
    if model.style == "fixed" and model.level in FUSING_LEVELS:
        what = f"{provider} would be left few nodes of model {model.name}"
        why = f"style 'fixed' with level {model.level!r} fuses nodes into kernels that the CPU's provider alone has"
        hint = "give the model style = 'runtime', which leaves that to the phone, or level = 'basic'"
        raise PlanError("provider-needs-runtime-style", what, where=job.target.identifier, why=why, hint=hint)


def _require_xnnpack(job: BuildJob) -> None:
    where = job.target.identifier
    if job.target.architecture is Architecture.ARM:
        what = "xnnpack is not built for 32-bit ARM"
        why = "upstream does it with a patch to XNNPACK's build, and ortrim builds sources as they were pinned"
        raise PlanError("provider-unsupported", what, where=where, why=why, hint=f"leave it out: {_without(where)}")
    missing = provider_sources(job.target, ("xnnpack",)) - {source.name for source in job.sources}
    if missing:
        what = "xnnpack cannot be compiled: its sources are not among the pinned ones"
        why = f"not there: {', '.join(sorted(missing))}"
        hint = "take a kind of source that has them (invoke pins.update pins upstream's archives), or leave xnnpack out"
        raise PlanError("provider-sources-missing", what, where=where, why=why, hint=hint)


def _without(where: str) -> str:
    return f"give the target {where} android = {{ providers = [] }}"


def _xnnpack_sources(target: Target) -> dict[str, str]:
    return XNNPACK_SOURCES | (ARM64_SOURCES if target.architecture is Architecture.ARM64 else {})
