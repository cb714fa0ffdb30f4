"""The case of a model that has none in its buildspec, of the sizes that its steps fix."""

from collections.abc import Mapping
from dataclasses import replace

from ortrim.core.model_spec import CaseSpec, InputSpec, ModelSpec
from ortrim.core.models import PreparedModel, TensorInfo
from ortrim.core.step_specs import Batch, FixDimensions
from ortrim.verify.cases import DEFAULT_CASES


def with_default_case(spec: ModelSpec, original: PreparedModel) -> ModelSpec:
    """Return a model's spec whose default case, where it has no cases, has the sizes that its steps fix.

    Sizes of dimensions that a step before gave another name are not found.
    """
    inputs = original.facts.inputs
    sizes = _sizes(spec, inputs)
    fixed = {info.name: InputSpec(shape=shape) for info in inputs if (shape := _shape(info, sizes))}
    if spec.cases or not fixed:
        return spec
    return replace(spec, cases=(CaseSpec(name=DEFAULT_CASES[0].name, inputs=fixed),))


def _sizes(spec: ModelSpec, inputs: tuple[TensorInfo, ...]) -> dict[str, int]:
    """Return fixed sizes by the dimension's name, or `INPUT:AXIS`."""
    sizes: dict[str, int] = {}
    for step in spec.steps:
        if isinstance(step, FixDimensions):
            sizes |= step.sizes
        elif isinstance(step, Batch) and isinstance(step.size, int):
            sizes |= {f"{info.name}:0": step.size for info in inputs}
    return sizes


def _shape(info: TensorInfo, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the shape that the sizes give an input, None when they say nothing of it."""
    found = [
        size if isinstance(size, int) else sizes.get(f"{info.name}:{axis}", sizes.get(size or ""))
        for axis, size in enumerate(info.shape or ())
    ]
    is_told = any(
        isinstance(size, int) != isinstance(was, int) for size, was in zip(found, info.shape or (), strict=True)
    )
    return tuple(1 if size is None else size for size in found) if is_told else None
