"""What the full runtime says of a model that `lint` judges: its kernels, its runs, and its checker's counts."""

import os
import re
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Final

from ortrim.core.graph_facts import GraphFacts, dimension_name, dynamic_dimensions
from ortrim.core.models import TensorInfo
from ortrim.errors import ConvertError, ToolError
from ortrim.lint.facts import KernelFacts, Operator, ProviderFacts, RunFacts, Trial
from ortrim.models.kernels import missing_kernel
from ortrim.models.scripts import run_script
from ortrim.storage.cache import cache_folder
from ortrim.tools.full_runtime import FullRuntime

RUN_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 30.0
MEMORY_BYTES: Final = 8 * 2**30
TIMES_MODEL: Final = 6
"""How much address space a model may take, in its own sizes, beyond what any may."""
CONSTANT: Final = ("ai.onnx", "Constant")
"""Has no kernel: loading makes initializers of them."""
LONGEST_WORDS: Final = 300
LARGEST_SIZE: Final = 2**16
MOST_SIZES: Final = 16
"""Of a model's own that are tried besides the usual ones."""
NOISE: Final = (
    (re.compile(r"\[ONNXRuntimeError\] : \d+ : \w+ : "), ""),
    (
        re.compile(r"Non-zero status code returned while running (\w+) node\. Name:'([^']*)' Status Message: "),
        r"\1 '\2': ",
    ),
    (re.compile(r"(\w) '': "), r"\1: "),
    (
        re.compile(
            r"(?:/onnxruntime_src/)?[\w/.]*\w\.(?:cc|h):\d+ (?:[^()]*\((?:[^()]|\([^()]*\))*\)(?: const)?(?= ))?"
        ),
        "",
    ),
)
"""What says where ONNX Runtime's own code is, and not what is wrong with the model."""
PLAIN_NAME: Final = re.compile(r"[^+*/() ]+")
"""A dimension whose size no other decides, unlike `past + 1`."""


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What the runtime said, and in words what could not be asked."""

    kernels: KernelFacts | None = None
    run: RunFacts | None = None
    providers: tuple[ProviderFacts, ...] | None = None
    not_checked: tuple[str, ...] = ()


def look(path: Path, graph: GraphFacts, runtime: FullRuntime, *, run: bool) -> Looked:
    """Ask the full runtime about a model; each question in a process of its own, with a time limit.

    Raises `ToolError` or `StorageError` when the runtime cannot be started at all.
    """
    looked = _operators(path.resolve(), graph, runtime)
    if not run:
        words = (*looked.not_checked, "loading and running: --no-run was given")
        return replace(looked, not_checked=words)
    return _with_runs(path.resolve(), graph, runtime, looked)


def _operators(path: Path, graph: GraphFacts, runtime: FullRuntime) -> Looked:
    """Ask for kernels and for what mobile execution providers take."""
    request: dict[str, object] = {"operators": sorted(_own_operators(graph)), "model": str(path)}
    try:
        answer = _asked(runtime, "lint_operators.py", request, path)
    except (ConvertError, ToolError) as error:
        _reraise_unless_about_the_model(error)
        return Looked(not_checked=(f"kernels and mobile execution providers: {error.what}",))
    kernels = KernelFacts(without=_pairs(answer["without"]), unheard=_pairs(answer["unheard"]))
    if answer["unusable"]:
        words = f"mobile execution providers: upstream's checker cannot be used here: {answer['unusable'][:300]}"
        return Looked(kernels=kernels, not_checked=(words,))
    return Looked(kernels=kernels, providers=tuple(_provider(each) for each in answer["providers"]))


def _with_runs(path: Path, graph: GraphFacts, runtime: FullRuntime, looked: Looked) -> Looked:
    """Load the model and run it."""
    inputs = [_input(value) for value in graph.model.inputs]
    why_not = _not_runnable(graph)
    names = () if why_not else dynamic_dimensions(graph.model.inputs)
    sizes = {"memory_bytes": MEMORY_BYTES + TIMES_MODEL * (graph.model.size_bytes + graph.external_bytes)}
    request = {"model": str(path), "inputs": inputs, "dimensions": names, "run": not why_not, "seconds": RUN_SECONDS}
    try:
        answer = _asked(runtime, "lint_runs.py", {**request, **sizes, "sizes": own_sizes(graph)}, path)
    except (ConvertError, ToolError) as error:
        _reraise_unless_about_the_model(error)
        return replace(looked, run=RunFacts(crash=error.what))
    trials = tuple(
        Trial(sizes=tuple(each["sizes"].items()), failure=plain_words(each["failure"], path))
        for each in answer["trials"]
    )
    run = RunFacts(load_failure=plain_words(answer["load"], path), trials=trials)
    words = tuple(f"some sizes: {each}" for each in (why_not, answer["skipped"]) if each)
    kernels = _with_missing(looked.kernels, answer["load"]) if answer["load"] else KernelFacts()
    return replace(looked, run=run, kernels=kernels, not_checked=(*looked.not_checked, *words))


def _asked(runtime: FullRuntime, script: str, request: dict[str, object], path: Path) -> dict[str, Any]:
    limit = RUN_SECONDS + GRACE_SECONDS
    folder = cache_folder("conversions")
    return run_script(runtime, script, request, folder=folder, where=str(path), timeout_seconds=limit)


def _reraise_unless_about_the_model(error: ConvertError | ToolError) -> None:
    """Tell a crash or an endless run, which are the model's doing, from a runtime that does not start."""
    if error.reference not in {"converter-crashed", "tool-timeout"}:
        raise error


def _with_missing(kernels: KernelFacts | None, words: str) -> KernelFacts | None:
    found = missing_kernel(words)
    if found is None:
        return kernels
    missing = ((found.domain or "ai.onnx", found.name), found.node)
    return replace(kernels or KernelFacts(), missing=missing)


def _own_operators(graph: GraphFacts) -> set[Operator]:
    """Return the operators of a model for which kernels have to be there."""
    from ortrim.models.graph_reading import inlined_operators  # noqa: PLC0415 - it imports onnx

    used = {(node.domain, node.operator) for node in graph.nodes}
    return used - {CONSTANT, *graph.functions} - inlined_operators(used, dict(graph.model.opsets))


def _not_runnable(graph: GraphFacts) -> str:
    """Return why the inputs cannot be made, empty when they can."""
    for value in graph.model.inputs:
        if value.shape is None:
            return f"input '{value.name}' does not say how many dimensions it has"
    names = dynamic_dimensions(graph.model.inputs)
    tied = [name for name in names if PLAIN_NAME.fullmatch(name) is None]
    return f"the size '{tied[0]}' depends on others" if tied else ""


def _input(value: TensorInfo) -> dict[str, object]:
    shape = [
        size if isinstance(size, int) else dimension_name(value, axis) for axis, size in enumerate(value.shape or ())
    ]
    return {"name": value.name, "type": value.element_type, "shape": shape}


def _pairs(found: list[list[str]]) -> tuple[Operator, ...]:
    return tuple(sorted((domain, name) for domain, name in found))


def _provider(answer: dict[str, Any]) -> ProviderFacts:
    return ProviderFacts(**{**answer, "unsupported": tuple(answer["unsupported"])})


def own_sizes(graph: GraphFacts) -> tuple[int, ...]:
    """Return sizes that a model may have been exported with: those of its weights, and of shapes that it fixes."""
    fixed = {prod(weight.values) for weight in graph.weights if weight.values and min(weight.values) > 0}
    fixed |= {size for weight in graph.weights for size in (*weight.values, *weight.dimensions)}
    return tuple(sorted(size for size in fixed if 1 < size <= LARGEST_SIZE)[-MOST_SIZES:])


def plain_words(words: str, path: Path) -> str:
    """Return ONNX Runtime's words without codes, places in its sources, and this machine's folder of the model."""
    plain = words.replace(str(path), path.name).replace(f"{path.parent}{os.sep}", "")
    for pattern, instead in NOISE:
        plain = pattern.sub(instead, plain)
    return " ".join(plain.split())[:LONGEST_WORDS]
