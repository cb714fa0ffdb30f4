"""Models that are written for one kind of processor, and the targets that have it. Pure.

Facts: `MlasNchwcGetBlockSize` of 1.21.0 is 8 in every minimal build for x64, by SSE, AVX or FMA3 kernels, and 1, which
means that there is none, on all other processors. Signed quantized operators run everywhere.
"""

from collections.abc import Iterable

from ortrim.core.plan import BuildJob, PlannedModel
from ortrim.core.targets import Architecture
from ortrim.errors import PlanError


def require_layouts(job: BuildJob, models: Iterable[PlannedModel]) -> None:
    """Refuse models that the target's processors cannot run. Raises `PlanError` (`layout-elsewhere`)."""
    for model in models:
        if model.layout == "nchwc8" and job.target.architecture is not Architecture.X64:
            what = f"model {model.name} is laid out for x64 (layout = 'nchwc8')"
            why = "the runtime has kernels for that layout on x64 alone"
            hint = "build this target from a buildspec of its own, with a model without 'layout'"
            raise PlanError("layout-elsewhere", what, where=job.target.identifier, why=why, hint=hint)
