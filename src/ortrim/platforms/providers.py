"""Execution providers beside the CPU's: what each asks of upstream's build, and what keeps it from working. Pure.

Facts: upstream's `cmake/onnxruntime_providers_nnapi.cmake`, `cmake/onnxruntime_providers_coreml.cmake`,
`cmake/external/xnnpack.cmake`, `cmake/external/onnxruntime_external_deps.cmake` and `onnxruntime/core/providers/` of
1.21.0.
"""

from collections.abc import Iterable
from typing import Final

from ortrim.core.plan import BuildJob, PlannedModel
from ortrim.core.targets import Architecture, Target
from ortrim.errors import PlanError

FLAGS: Final = {"coreml": "--use_coreml", "nnapi": "--use_nnapi", "xnnpack": "--use_xnnpack"}

XNNPACK_SOURCES: Final = {"fxdiv": "FXDIV", "pthreadpool": "PTHREADPOOL", "xnnpack": "GOOGLEXNNPACK"}
"""Name in the source tree -> name in CMake's FETCHCONTENT_SOURCE_DIR_<NAME>; cpuinfo, which it needs too, apart."""
ARM64_SOURCES: Final = {"kleidiai": "KLEIDIAI"}
COREML_SOURCES: Final = {"coremltools": "COREMLTOOLS", "fp16": "FP16", "psimd": "PSIMD"}
FUSING_LEVELS: Final = ("extended", "all")


def providers_of(job: BuildJob) -> tuple[str, ...]:
    """Return a job's execution providers beside the CPU's."""
    system = job.android or job.apple
    return system.providers if system else ()


def provider_flags(job: BuildJob) -> tuple[str, ...]:
    """Return the arguments of `build.py` that compile a job's execution providers in."""
    return tuple(FLAGS[name] for name in providers_of(job))


def minimal_build(job: BuildJob) -> tuple[str, ...]:
    """Return the kind of minimal build: a provider takes nodes and turns layouts around in an extended one alone.

    NNAPI's and CoreML's CMake files stop without it; XNNPACK's does not, and the provider would get no node.
    """
    return ("--minimal_build", "extended") if providers_of(job) else ("--minimal_build",)


def provider_definitions(job: BuildJob) -> tuple[str, ...]:
    """Return the CMake definitions that say where the sources of a job's providers are."""
    return tuple(
        f"FETCHCONTENT_SOURCE_DIR_{name}=${{sources}}/{folder}"
        for provider in providers_of(job)
        for folder, name in _fetched(job.target, provider).items()
    )


def provider_sources(target: Target, providers: Iterable[str]) -> frozenset[str]:
    """Return the sources that providers need beside ONNX Runtime's own."""
    asked = tuple(providers)
    cpuinfo = ("cpuinfo",) if "xnnpack" in asked else ()
    return frozenset((*(name for provider in asked for name in _fetched(target, provider)), *cpuinfo))


def is_provider_source(name: str) -> bool:
    """Whether a source is of use to a provider alone."""
    return any(name in sources for sources in (XNNPACK_SOURCES, ARM64_SOURCES, COREML_SOURCES))


def require_providers(job: BuildJob, models: Iterable[PlannedModel]) -> None:
    """Refuse providers that could not do their work.

    Raises `PlanError`: `provider-needs-runtime-style`, `provider-unsupported` or `provider-sources-missing`.
    """
    for provider in providers_of(job):
        for model in models:
            _require_style(job, provider, model)
        _require_possible(job, provider)
        _require_sources(job, provider)


def _require_style(job: BuildJob, provider: str, model: PlannedModel) -> None:
    if model.style == "fixed" and model.level in FUSING_LEVELS:
        what = f"{provider} would be left few nodes of model {model.name}"
        why = f"style 'fixed' with level {model.level!r} fuses nodes into kernels that the CPU's provider alone has"
        hint = "give the model style = 'runtime', which leaves that to the device, or level = 'basic'"
        raise PlanError("provider-needs-runtime-style", what, where=job.target.identifier, why=why, hint=hint)


def _require_possible(job: BuildJob, provider: str) -> None:
    where = job.target.identifier
    if provider == "xnnpack" and job.target.architecture is Architecture.ARM:
        what = "xnnpack is not built for 32-bit ARM"
        why = "upstream does it with a patch to XNNPACK's build, and ortrim builds sources as they were pinned"
        hint = f"leave it out: give the target {where} android = {{ providers = [] }}"
        raise PlanError("provider-unsupported", what, where=where, why=why, hint=hint)


def _require_sources(job: BuildJob, provider: str) -> None:
    missing = provider_sources(job.target, (provider,)) - {source.name for source in job.sources}
    if missing:
        what = f"{provider} cannot be compiled: its sources are not among the pinned ones"
        why = f"not there: {', '.join(sorted(missing))}"
        hint = (
            "take a kind of source that has them (invoke pins.update pins upstream's archives), "
            f"or leave {provider} out"
        )
        raise PlanError("provider-sources-missing", what, where=job.target.identifier, why=why, hint=hint)


def _fetched(target: Target, provider: str) -> dict[str, str]:
    """Return the sources of a provider, by the name of each in the source tree and in CMake."""
    match provider:
        case "xnnpack":
            return XNNPACK_SOURCES | (ARM64_SOURCES if target.architecture is Architecture.ARM64 else {})
        case "coreml":
            return COREML_SOURCES
        case _:
            return {}
