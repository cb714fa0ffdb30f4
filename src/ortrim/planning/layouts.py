"""The layout of a model whose buildspec leaves it to ortrim: NCHWc where convolutions decide.

On x64 the official library changes every model to it when it loads it, which a minimal build cannot: without it
convolutional models take 1.6 to 4.1 times as long (docs/reference/session.md).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ortrim.base.console import Console
from ortrim.buildspec.buildspec import BuildSpec, Layout, ModelSpec
from ortrim.errors import Diagnostic, ToolError
from ortrim.models.convert import converter_for
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import ModelFacts, PreparedModel

LEAST_SHARE: Final = 0.05
"""Share of the weights that convolutions have at least where the layout pays.

A convolution's weights are used for every pixel, those of a product once, so that this is a larger share of the time.
Below it, as where a transformer cuts an image into pieces, the kernels would make the library larger for nothing.
"""
PROFILES: Final = ("balanced", "speed")
"""Those that trade size for speed: the kernels make a library larger."""


def chosen_layouts(
    spec: BuildSpec, prepared: tuple[PreparedModel, ...], runtime: FullRuntime, console: Console
) -> dict[str, Layout]:
    """Return the layout of each model that NCHWc makes faster on a target that runs it, by its name; say which.

    A library has one block size: where a buildspec asks for 16, no other is chosen beside it.
    """
    if any(model.layout == "nchwc16" for model in spec.models):
        return {}
    models = zip(spec.models, prepared, strict=True)
    names = [model.name for model, own in models if spec.profile in PROFILES and _pays(model, own.facts)]
    if names and (refusal := _refusal(runtime)):
        console.note(f"{', '.join(names)}: not in NCHWc layout, the faster one for convolutions on x64: {refusal}")
        return {}
    for name in names:
        console.note(f"{name}: in NCHWc layout, the faster one for convolutions on x64 (layout = 'plain': without it)")
    return dict.fromkeys(names, "nchwc8")


def _pays(model: ModelSpec, facts: ModelFacts) -> bool:
    free = model.layout == "auto" and model.style == "fixed" and model.level in ("extended", "all")
    return free and facts.convolution_share >= LEAST_SHARE


def _refusal(runtime: FullRuntime) -> str:
    """Return why this machine cannot convert to NCHWc layout, or nothing."""
    try:
        converter_for("nchwc8", runtime, "")
    except Diagnostic as error:
        hint = error.hint if isinstance(error, ToolError) else ""
        return "; ".join(filter(None, (f"{error.where} {error.what}".strip(), hint)))
    return ""


def with_layout(model: ModelSpec, layouts: Mapping[str, Layout]) -> ModelSpec:
    """Return a model with the layout that was chosen for it, or plain where that was left open."""
    if model.name in layouts:
        return replace(model, layout=layouts[model.name], level="all")
    return replace(model, layout="plain") if model.layout == "auto" else model
