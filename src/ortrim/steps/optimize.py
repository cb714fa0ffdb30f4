"""Graph optimisation before any conversion."""

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import onnx

from ortrim.core.number_steps import OptimizationLevel, Optimize
from ortrim.errors import ModelError
from ortrim.steps.graph_wiring import DEFAULT_DOMAIN
from ortrim.steps.graphs import nodes_in
from ortrim.steps.isolation import runtime_python
from ortrim.steps.runtime_tools import rewritten
from ortrim.steps.stepped import Stepped, Workplace

SCRIPT: Final = "step_optimize.py"
LEVELS_SINCE: Final[Mapping[OptimizationLevel, tuple[int, int]]] = MappingProxyType({"layout": (1, 23)})
"""The versions that brought a level (`ORT_ENABLE_LAYOUT` in `onnxruntime_c_api.h`); others are in all."""
LAYOUT_DOMAIN: Final = "com.microsoft.nchwc"
"""Of convolutions with their channels in blocks (`nchwc_transformer.cc`)."""


def optimize(model: onnx.ModelProto, options: Optimize, place: Workplace) -> Stepped:
    """Let ONNX Runtime optimise the graph at one level for one execution provider.

    Raises `ModelError`: `level-not-there`, and `step-failed`, among others when the wheel lacks the provider.
    """
    since = LEVELS_SINCE.get(options.level, (0, 0))
    if tuple(map(int, place.runtime.version.split(".")[:2])) < since:
        what = f"ONNX Runtime {place.runtime.version} has no optimization level '{options.level}'"
        hint = f"take 'all' or 'extended', or ONNX Runtime {'.'.join(map(str, since))} or newer"
        raise ModelError("level-not-there", what, where=place.where, hint=hint)
    before = _operators(model)
    request = {"level": options.level, "provider": options.provider}
    made, _ = rewritten(model, SCRIPT, request, place, python=runtime_python(place))
    return Stepped(model=made, notes=tuple(_notes(_operators(made) - before, options)))


def _operators(model: onnx.ModelProto) -> Counter[tuple[str, str]]:
    return Counter((node.domain, node.op_type) for node in nodes_in(model) if node.domain not in DEFAULT_DOMAIN)


def _notes(new: Counter[tuple[str, str]], options: Optimize) -> Iterator[str]:
    """Say what only some runtimes can do with the model from now on."""
    if new:
        listed = ", ".join(f"{count} {name} ({domain})" for (domain, name), count in sorted(new.items()))
        yield f"operators of ONNX Runtime's own, as {options.provider} takes them: {listed}"
    if any(domain == LAYOUT_DOMAIN for domain, _ in new):
        yield (
            "convolutions are laid out for processors like this machine's, which others may not run: a minimal build "
            "takes blocks of 8, for which layout = 'nchwc8' of the conversion is, or of 16, layout = 'nchwc16'"
        )
