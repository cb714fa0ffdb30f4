"""Models that are written for one kind of processor, and the targets that have it. Pure.

Facts: `MlasNchwcGetBlockSize` of 1.21.0 is 8 in every minimal build for x64, by SSE, AVX or FMA3 kernels, and 1, which
means that there is none, on all other processors. It is one number for all models of a library; `wide_blocks.cc` makes
it 16. Signed quantized operators run everywhere.
"""

from collections.abc import Iterable
from typing import Final

from ortrim.core.plan import BuildJob, PlannedModel
from ortrim.core.targets import Architecture, OperatingSystem
from ortrim.errors import PlanError

AVX512: Final = "x86-64-v4"
"""The least processor, as buildspecs name it, that has AVX-512."""
BLOCKS: Final = ("nchwc8", "nchwc16")


def require_layouts(job: BuildJob, models: Iterable[PlannedModel]) -> None:
    """Refuse models that the target's processors, or one library, cannot run.

    Raises `PlanError` (`layout-elsewhere`, `layouts-mixed`).
    """
    laid_out = [model for model in models if model.layout in BLOCKS]
    for model in laid_out:
        if job.target.architecture is not Architecture.X64:
            what = f"model {model.name} is laid out for x64 (layout = '{model.layout}')"
            why = "the runtime has kernels for that layout on x64 alone"
            hint = "build this target from a buildspec of its own, with a model without 'layout'"
            raise PlanError("layout-elsewhere", what, where=job.target.identifier, why=why, hint=hint)
        if model.layout == "nchwc16" and job.cpu != AVX512:
            what = f"model {model.name} is laid out for AVX-512 (layout = 'nchwc16')"
            why = "the target's least processor need not have it"
            hint = f"{_floor_words(job)}take layout = 'nchwc8'"
            raise PlanError("layout-elsewhere", what, where=job.target.identifier, why=why, hint=hint)
    _require_one_width(job, laid_out)


def _floor_words(job: BuildJob) -> str:
    """Say how to promise AVX-512, where a target can: `target_rules.py` refuses a floor elsewhere."""
    can = job.toolchain.kind == "zig" and job.target.system is OperatingSystem.LINUX
    return f"give the target cpu = '{AVX512}' if every processor has it, or " if can else ""


def _require_one_width(job: BuildJob, laid_out: list[PlannedModel]) -> None:
    first = {model.layout: model.name for model in reversed(laid_out)}
    if len(first) > 1:
        what = " and ".join(f"model {first[layout]} has layout = '{layout}'" for layout in BLOCKS)
        why = "a library takes channels in blocks of 8 or of 16, for all its models"
        hint = "give both the same layout, or build them from buildspecs of their own"
        raise PlanError("layouts-mixed", what, where=job.target.identifier, why=why, hint=hint)
