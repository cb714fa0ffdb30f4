"""Refusing models with a node that no kernel of the CPU execution provider implements, or none of a minimal build."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ortrim.base.files import storage_errors
from ortrim.base.json import to_data
from ortrim.buildspec.buildspec import SessionSettings, SessionSpec, settings_of
from ortrim.errors import ConvertError, ModelError, OperatorsError
from ortrim.models.full_runtime import FullRuntime, run_script
from ortrim.models.graph_facts import NodeFacts, node_facts
from ortrim.models.models import PreparedModel
from ortrim.models.onnx_files import read_onnx, with_types
from ortrim.models.operators import NCHWC
from ortrim.models.refusals import known_refusal, plain_words


def find_uses(path: Path, name: str, domain: str = "", node: str = "") -> tuple[tuple[str, int, str], ...]:
    """Return an operator's uses in a model: its domain, the opset imported for that (0: none), and its input types.

    `domain` and `node`, when given, narrow the search.
    """
    model = with_types(read_onnx(path, str(path)))
    opsets = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    uses = []
    for each in node_facts(model):
        if each.operator == name and domain in {"", each.domain} and node in {"", each.name}:
            signature = ", ".join(value.element_type or "unknown type" for value in each.inputs if value.name)
            uses.append((each.domain, opsets.get(each.domain, 0), signature or "no inputs"))
    return tuple(uses)


PATTERNS: Final = (
    re.compile(r"Could not find an implementation for (?P<name>\w+)\((?P<opset>\d+)\) node with name '(?P<node>.*)'"),
    re.compile(
        r"Failed to find kernel for (?:(?P<domain>[\w.]+)\.)?(?P<name>\w+)\((?P<opset>\d+)\) \(node:'(?P<node>.*?)'"
    ),
    re.compile(r"(?P<domain>[\w.]*):(?P<name>\w+)\((?P<opset>-?\d+)\) is not a registered function/op"),
    re.compile(
        r'In Node, \("(?P<node>.*?)", (?P<name>\w+), "(?P<domain>.*?)", -?\d+\)[^\n]*'
        r"No Op registered for \w+ with domain_version of (?P<opset>\d+)"
    ),
)
"""What ONNX Runtime says of an operator without a kernel, or of which it has never heard: `session_state.cc`,
`kernel_registry_manager.cc`, `graph.cc`."""

ANY_LATER_OPSET: Final = 2**31 - 1
OWN_DOMAINS: Final = ("ai.onnx", "ai.onnx.ml", "com.microsoft", NCHWC, "com.ms.internal.nhwc")


@dataclass(frozen=True, kw_only=True)
class MissingKernel:
    """An operator for which ONNX Runtime found no kernel, in its own words; what it left out is empty."""

    domain: str
    name: str
    opset: str
    node: str


def check_kernels(converted: Path, *, original: PreparedModel, runtime: FullRuntime, folder: Path) -> None:
    """Load a converted model in the full runtime with the CPU execution provider alone, and say why it cannot be."""
    answer = run_script(
        runtime, "models.py", {"do": "load", "model": str(converted)}, folder=folder, where=original.name
    )
    if "failure" not in answer:
        return
    words = str(answer["words"])
    missing = kernel_diagnostic(words, original=original, runtime=runtime, folder=folder)
    if missing is not None:
        raise missing
    if known := known_refusal(words, original, converted=True):
        raise known
    what = f"ONNX Runtime {runtime.version} cannot load the model that it converted itself"
    hint = "try level = 'basic', or style = 'fixed'"
    raise ConvertError("converted-model-unusable", what, where=original.name, why=words, hint=hint)


EXPORT_FOR_INFERENCE: Final = (
    "export a network for inference (PyTorch: model.eval() comes first), and trees for ai.onnx.ml 3 "
    "(skl2onnx: target_opset={'': 17, 'ai.onnx.ml': 3})"
)


def not_in_minimal_builds(nodes: Iterable[NodeFacts]) -> Iterator[tuple[NodeFacts, str]]:
    """Yield the nodes that end a program with a minimal build when it loads the model, and what they are.

    The full runtime has both (`tree_ensemble_attribute.h`, `batch_norm.h`). Before opset 14 a normalization trains when
    it has further outputs.
    """
    for node in nodes:
        if (node.domain, node.operator) == ("ai.onnx.ml", "TreeEnsemble"):
            yield node, "TreeEnsemble of ai.onnx.ml 5"
        elif (node.domain, node.operator) == ("ai.onnx", "BatchNormalization"):
            further = any(output.name for output in node.outputs[1:])
            if further or node.attribute("training_mode") == "1":
                yield node, "BatchNormalization that trains"


def check_minimal_build(model: PreparedModel) -> None:
    """Raise `OperatorsError` (`not-in-minimal-builds`) for a model that no trimmed library loads."""
    with storage_errors(model.path):
        read = read_onnx(model.path, model.name)
    for node, words in not_in_minimal_builds(node_facts(read)):
        what = f"a trimmed ONNX Runtime has no {words}"
        where = f"{model.name}, node '{node.place}'"
        raise OperatorsError("not-in-minimal-builds", what, where=where, hint=EXPORT_FOR_INFERENCE)


def loads_in_place(converted: Path, *, runtime: FullRuntime, folder: Path) -> bool:
    """Whether the full runtime loads a model in ORT format and leaves its weights in the application's bytes.

    It cannot make sparse ones dense there. What was saved for the device is applied.
    """
    session = settings_of(SessionSpec(), style="runtime", reads_in_place=True)
    return not session_refusal(converted, session, runtime=runtime, folder=folder)


def session_refusal(converted: Path, session: SessionSettings, *, runtime: FullRuntime, folder: Path) -> str:
    """Return why the full runtime creates no session with these settings as applications do; empty if it does."""
    request = {"library": str(runtime.library), "model": str(converted), "session": to_data(session)}
    return _refusal("load_in_bytes.py", request, converted, runtime, folder)


def load_refusal(model: Path, *, runtime: FullRuntime, folder: Path, optimized: bool = True) -> str:
    """Return why the full runtime does not load a model; empty if it does."""
    return _refusal("models.py", {"do": "load", "model": str(model), "optimized": optimized}, model, runtime, folder)


def _refusal(script: str, request: dict[str, Any], model: Path, runtime: FullRuntime, folder: Path) -> str:
    try:
        answer = run_script(runtime, script, request, folder=folder, where=str(model))
    except ModelError as crash:
        return f"{crash.what}\n{crash.why}"
    return str(answer["words"]) if "failure" in answer else ""


def missing_kernel(words: str) -> MissingKernel | None:
    """Return the operator that ONNX Runtime's words are about, when they are about a missing kernel."""
    found = next((match for pattern in PATTERNS if (match := pattern.search(words))), None)
    if found is None:
        return None
    parts = {"domain": "", "node": "", **found.groupdict()}
    domain = parts["domain"] or ("ai.onnx" if "domain" in found.groupdict() else "")
    opset = "" if parts["opset"].startswith("-") else parts["opset"]
    return MissingKernel(domain=domain, name=parts["name"], opset=opset, node=parts["node"])


def kernel_diagnostic(
    words: str, *, original: PreparedModel, runtime: FullRuntime, folder: Path
) -> OperatorsError | None:
    """Return the diagnostic when ONNX Runtime's words are about a missing kernel.

    It is `no-kernel` where others of the operator are there, `other-provider-only` where only other execution providers
    have some, and else `unknown-operator`.
    """
    missing = missing_kernel(words)
    if missing is None:
        return None
    uses = find_uses(original.path, missing.name, missing.domain, missing.node)
    domain = missing.domain or next((found for found, _, _ in uses), "unknown domain")
    opset = missing.opset or next((str(imported) for _, imported, _ in uses if imported), "unknown")
    types = "; ".join(sorted({signature for _, _, signature in uses})) or "unknown (an optimization made the node)"
    request = {"do": "kernels", "operator": missing.name}
    answer = run_script(runtime, "models.py", request, folder=folder, where=original.name)
    kernels = [kernel for kernel in answer["kernels"] if kernel["domain"] == domain]
    known = domain in answer["known"]
    return OperatorsError(
        "no-kernel" if kernels else "other-provider-only" if known else "unknown-operator",
        f"ONNX Runtime {runtime.version} has no CPU kernel of {domain} {missing.name} (opset {opset}) for {types}",
        where=f"{original.name}, node '{missing.node}'" if missing.node else original.name,
        why=plain_words(words, original.path, original.name),
        hint=_hint(domain, missing.name, kernels, known=known),
    )


def _hint(domain: str, name: str, kernels: Sequence[dict[str, Any]], *, known: bool) -> str:
    if domain not in OWN_DOMAINS:
        return f"operators of the domain {domain} come from a custom library, which ortrim cannot build in"
    if not known:
        return "export without it, or as a model function of ONNX's own operators"
    if not kernels:
        return "use the model as exported: optimizing for a GPU creates such operators; or export without this one"
    return f"cast to types that have a kernel, or export with another opset; {name} has " + _kernel_words(kernels)


def _kernel_words(kernels: Sequence[dict[str, Any]]) -> str:
    """Return the kernels' opsets, each with the types that some kernel of it takes."""
    known: dict[tuple[int, int], dict[str, set[str]]] = {}
    for kernel in kernels:
        constraints = known.setdefault(tuple(kernel["opsets"]), {})
        for key, types in kernel["types"].items():
            constraints.setdefault(key, set()).update(types)
    words = []
    for (first, last), constraints in sorted(known.items()):
        end = "" if first == last else "+" if last == ANY_LATER_OPSET else f"-{last}"
        types = ", ".join(f"{key} = {' | '.join(sorted(own))}" for key, own in sorted(constraints.items()))
        words.append(f"opset {first}{end}: " + (re.sub(r"tensor\(([^)]*)\)", r"\1", types) or "any type"))
    return "; ".join(words)


Key = tuple[str, str]


def kernel_versions(
    keys: Iterable[Key], *, runtime: FullRuntime, folder: Path
) -> dict[Key, tuple[tuple[int, int], ...]]:
    """Return the first and last opset of each kernel of operators, given and keyed by domain and name."""
    wanted = set(keys)
    found: dict[Key, set[tuple[int, int]]] = {key: set() for key in wanted}
    for name in sorted({name for _, name in wanted}):
        answer = run_script(runtime, "models.py", {"do": "kernels", "operator": name}, folder=folder, where=name)
        for kernel in answer["kernels"]:
            first, last = kernel["opsets"]
            found.get((kernel["domain"], name), set()).add((first, last))
    return {key: tuple(sorted(ranges)) for key, ranges in found.items()}
