"""The rules of `lint`, what they look at and what they find. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final, Literal

import numpy as np

from ortrim.base.console import counted
from ortrim.base.files import shipped_words
from ortrim.base.tools import Cause
from ortrim.errors import Diagnostic, ModelError, OperatorsError
from ortrim.models import graph_facts, refusals
from ortrim.models.kernels import EXPORT_FOR_INFERENCE, not_in_minimal_builds
from ortrim.models.models import TensorInfo
from ortrim.models.onnx_files import LARGEST_MODEL_BYTES, unsupported
from ortrim.models.shapes import BY_CHANCE

Operator = tuple[str, str]
"""Domain and name."""
Sizes = tuple[tuple[str, int], ...]
"""Dynamic dimensions with the sizes that they were given."""
Level = Literal["error", "advice"]


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    """What the full runtime says of the model's operators.

    `without` are those without any CPU kernel that are no functions of other operators, `unheard` those of them that
    the runtime has never heard of. `missing` is the one, with its node, at which loading ended.
    """

    without: tuple[Operator, ...] = ()
    unheard: tuple[Operator, ...] = ()
    missing: tuple[Operator, str] | None = None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """How the model fared in the full runtime: why it did not load, if so, how it ended early, and all runs.

    Each run has its sizes of the dynamic dimensions, and how it failed, which is empty when it ended well.
    """

    load_failure: str = ""
    crash: str = ""
    trials: tuple[tuple[Sizes, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProviderFacts:
    """What upstream's usability checker counts for one execution provider, by kinds of operator alone.

    `fixed_partitions` and `fixed_supported` are what they would be if all shapes were fixed.
    """

    name: str
    nodes: int
    supported: int
    partitions: int
    fixed_supported: int
    fixed_partitions: int
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LintFacts:
    """One model with all that is known of it; None stands for what was not looked at, as `not_checked` says in words.

    It is judged for a `version` of ONNX Runtime. `library` is the code size of
    each operator in a finished build, by name as `invoke size` shows it; `elsewhere` are the operators of the other
    models that are judged with this one, which keep their code in a common library.
    """

    graph: graph_facts.GraphFacts
    version: str
    kernels: KernelFacts | None = None
    run: RunFacts | None = None
    providers: tuple[ProviderFacts, ...] | None = None
    library: Sizes | None = None
    elsewhere: frozenset[Operator] = frozenset()
    not_checked: tuple[str, ...] = ()


Shown = tuple[str, str]
"""One place where a model breaks a rule, and how, in words."""
Check = Callable[[LintFacts], Iterable[Shown]]


@dataclass(frozen=True, kw_only=True)
class LintRule:
    """A rule: its stable code and level, what it is about, why that matters, and the step that mends it.

    An error ends the command as one of its `kind` does elsewhere.
    """

    code: str
    level: Level
    title: str
    why: str
    fix: str
    check: Check
    kind: type[Diagnostic] = ModelError


@dataclass(frozen=True, kw_only=True)
class LintFinding:
    """One thing that a rule found in a model."""

    code: str
    level: Level
    place: str
    words: str


RULES: Final[list[LintRule]] = []
"""All rules, in the order of the document, which is that of this file."""


WORDS: Final = shipped_words("rules/lint")
"""What stands there of each rule: level, title, why, and fix, unless that is also a hint elsewhere."""


def _rule(code: str, *, kind: type[Diagnostic] = ModelError, **words: str) -> Callable[[Check], Check]:
    """Put a function that finds what breaks a rule into the table; `words` are those that `WORDS` lacks."""

    def put(check: Check) -> Check:
        RULES.append(LintRule(code=code, check=check, kind=kind, **{**WORDS.get(code, {}), **words}))
        return check

    return put


@_rule("does-not-load", fix=refusals.LOAD_HINT)
def _does_not_load(facts: LintFacts) -> Iterator[Shown]:
    """Find a model that the full runtime refuses for another reason than a kernel, or than what its header says."""
    told = facts.kernels is not None and facts.kernels.missing is not None
    told = told or any((*_opset(facts), *_ir_version(facts)))
    if facts.run and facts.run.load_failure and not told and refusals.cause_of(facts.run.load_failure) is None:
        yield "model", facts.run.load_failure


def _refused_for(cause: Cause, facts: LintFacts) -> Iterator[Shown]:
    """Find a model that the full runtime refuses, or runs with no size that was tried, for a cause that is known."""
    trials = [failure for _, failure in facts.run.trials] if facts.run else []
    failures = (facts.run.load_failure, *(trials if all(trials) else ())) if facts.run else ()
    first = next((words for words in failures if refusals.cause_of(words) is cause), None)
    if first is not None:
        yield "model", first


for _cause in refusals.CAUSES:
    if _cause.code not in refusals.CONVERTED:
        why = "the full runtime refuses the model, and so does every trimmed one"
        put = _rule(
            _cause.code, kind=_cause.kind or ModelError, level="error", title=_cause.what, why=why, fix=_cause.hint
        )
        put(partial(_refused_for, _cause))


@_rule("crashes-runtime", fix=refusals.CRASH_HINT)
def _crashes(facts: LintFacts) -> Iterator[Shown]:
    if facts.run and facts.run.crash:
        yield "model", facts.run.crash


@_rule("does-not-run")
def _does_not_run(facts: LintFacts) -> Iterator[Shown]:
    for sizes, failure in facts.run.trials if facts.run else ():
        if not sizes and failure and refusals.cause_of(failure) is None:
            yield "model", failure


@_rule("dynamic-size-baked-in")
def _baked_in_size(facts: LintFacts) -> Iterator[Shown]:
    for name, worked, failed, failure in _outcomes(facts):
        if len(worked) == 1 and len(failed) > 2:
            yield name, f"'{name}' runs at {worked[0]} alone, not at {_listed(failed)}: {failure}"


def _outcomes(facts: LintFacts) -> Iterator[tuple[str, list[int], list[int], str]]:
    """Yield each dimension, the sizes at which it worked and failed, and the failure at the largest.

    It was changed alone or with all others: names for one size may differ.
    """
    trials = [(dict(sizes), failure) for sizes, failure in facts.run.trials] if facts.run else []
    base = next((sizes for sizes, failure in trials if sizes and not failure), {})
    for name in graph_facts.dynamic_dimensions(facts.graph.model.inputs) if base else ():
        found: dict[str, dict[int, str]] = {"worked": {}, "failed": {}}
        for sizes, failure in trials:
            alone = all(base.get(key) == size for key, size in sizes.items() if key != name)
            if name in sizes and (alone or len(set(sizes.values())) == 1):
                found["failed" if failure else "worked"][sizes[name]] = failure
        failed = sorted(found["failed"].keys() - found["worked"].keys())
        yield name, sorted(found["worked"]), failed, found["failed"][failed[-1]] if failed else ""


def _listed(sizes: Iterable[int]) -> str:
    return ", ".join(map(str, sizes))


@_rule("dynamic-size-limited")
def _limited_size(facts: LintFacts) -> Iterator[Shown]:
    for name, worked, failed, failure in _outcomes(facts):
        if len(worked) > 1 and failed:
            yield name, f"'{name}' runs at {_listed(worked)}, not at {_listed(failed)}: {failure}"


@_rule("no-size-runs")
def _no_size_runs(facts: LintFacts) -> Iterator[Shown]:
    trials = [(sizes, failure) for sizes, failure in facts.run.trials if sizes] if facts.run else []
    if trials and all(failure and refusals.cause_of(failure) is None for _, failure in trials):
        sizes, failure = trials[-1]
        words = ", ".join(f"{name} = {size}" for name, size in sizes)
        yield "model", f"none of {len(trials)} choices of sizes ran; with {words}: {failure}"


@_rule("unsupported-opset")
def _opset(facts: LintFacts) -> Iterator[Shown]:
    for code, domain, words, needed in unsupported(facts.graph.model, facts.version):
        if code == "unsupported-opset":
            yield domain, "; ".join(filter(None, (words, needed)))


@_rule("unsupported-ir-version")
def _ir_version(facts: LintFacts) -> Iterator[Shown]:
    for code, place, words, needed in unsupported(facts.graph.model, facts.version):
        if code == "unsupported-ir-version":
            yield place, f"it uses {words}; {needed}"


REFUSED_SINCE: Final = (1, 28)
"""Found by trying the wheels of 1.24.4 to 1.32.0: "Unsupported tensor data type". Until then the types' numbers were
written although `ort.fbs` has no names for them, and read back."""
LOW_BIT_TYPES: Final = frozenset({"int4", "uint4", "int2", "uint2"})


OPTIMIZED_SINCE: Final = (1, 27)
"""Found by running the wheels of 1.21.0 to 1.32.0 with and without optimizations: up to 1.26.0 outputs differ."""


@_rule("bias-of-another-scale")
def _bias_scale(facts: LintFacts) -> Iterator[Shown]:
    scales = {weight.name: weight.scales for weight in facts.graph.weights}
    for node, dequantized in _between_quantized(facts, "Conv"):
        if len(dequantized) != len(node.inputs) or len(dequantized) < 3:
            continue
        inputs, weights, bias = (scales.get(_input(each, 1), ()) for each in dequantized[:3])
        if (
            len(inputs) != 1
            or not weights
            or not bias
            or (len(weights) != len(bias) and 1 not in map(len, (weights, bias)))
        ):
            continue
        if not np.allclose(bias, np.multiply(inputs, weights), rtol=0.01, atol=0):
            yield node.place, f"the scale of the bias of '{node.place}' is not that of inputs times that of weights"


@_rule("resize-of-integers")
def _integer_resize(facts: LintFacts) -> Iterator[Shown]:
    for node, dequantized in _between_quantized(facts, "Resize"):
        if dequantized and node.attribute("mode") in {"linear", "cubic"}:
            yield node.place, f"'{node.place}' has mode '{node.attribute('mode')}' between two quantizations"


def _between_quantized(
    facts: LintFacts, operator: str
) -> Iterator[tuple[graph_facts.NodeFacts, tuple[graph_facts.NodeFacts, ...]]]:
    """Yield nodes that ONNX Runtime up to 1.26 takes as integer ones, with the nodes that dequantize their inputs."""
    if tuple(map(int, facts.version.split(".")[:2])) >= OPTIMIZED_SINCE:
        return
    makers = _makers(facts)
    values = {weight.name: weight.values for weight in facts.graph.weights}
    quantized = set()
    for node in (each for each in facts.graph.nodes if each.operator == "QuantizeLinear"):
        quantized.add(_input(node, 0))
        before, zero = makers.get(_input(node, 0)), node.inputs[2] if len(node.inputs) > 2 else None
        least = zero is None or (zero.element_type, *values.get(zero.name, ())) in {("uint8", 0), ("int8", -128)}
        if before is not None and before.operator == "Relu" and least:  # which then has nothing to do
            quantized.add(_input(before, 0))
    for node in facts.graph.nodes:
        made = node.outputs[0].name if node.outputs else ""
        if node.operator == operator and not node.scope and made and made in quantized:
            found = (makers.get(value.name) for value in node.inputs)
            yield node, tuple(each for each in found if each is not None and each.operator == "DequantizeLinear")


def _input(node: graph_facts.NodeFacts, number: int) -> str:
    """Return the name of an input, empty where a node has fewer."""
    return node.inputs[number].name if len(node.inputs) > number else ""


def _makers(facts: LintFacts) -> dict[str, graph_facts.NodeFacts]:
    """Return the main graph's nodes by the names of what they make."""
    return {value.name: node for node in facts.graph.nodes for value in node.outputs if not node.scope}


@_rule("weights-below-8-bits", fix=refusals.BELOW_8_BITS)
def _weights_below_8_bits(facts: LintFacts) -> Iterator[Shown]:
    if tuple(map(int, facts.version.split(".")[:2])) < REFUSED_SINCE:
        return
    for weight in facts.graph.weights:
        if weight.element_type in LOW_BIT_TYPES:
            words = f"weights of {weight.element_type}; ONNX Runtime {facts.version} reads none from ORT format"
            yield weight.name, words


@_rule("optional-values", fix=refusals.WITHOUT_OPTIONAL)
def _optional_values(facts: LintFacts) -> Iterator[Shown]:
    for node in _nodes(facts, ("ai.onnx", "Optional")):
        yield node.name or "Optional", "the operator Optional makes an optional value"


@_rule("model-too-large")
def _too_large(facts: LintFacts) -> Iterator[Shown]:
    if (size := _size(facts)) > (most := LARGEST_MODEL_BYTES):
        yield "model", f"{size:,} bytes with its data; a model in ORT format can have {most:,}"


def _size(facts: LintFacts) -> int:
    return facts.graph.model.size_bytes + facts.graph.external_bytes


NEAR: Final = 0.75


@_rule("near-2-gb")
def _nearly_too_large(facts: LintFacts) -> Iterator[Shown]:
    most = LARGEST_MODEL_BYTES
    if most * NEAR < (size := _size(facts)) <= most:
        yield "model", f"{size:,} bytes with its data, of {most:,} that are possible"


@_rule("external-data")
def _external_data(facts: LintFacts) -> Iterator[Shown]:
    names = sorted({weight.external for weight in facts.graph.weights if weight.external})
    for name in names:
        count = sum(weight.external == name for weight in facts.graph.weights)
        yield name, f"the weights of {count} tensors lie in '{name}', not in the model's file"


@_rule("no-kernel", kind=OperatorsError)
def _no_cpu_kernel(facts: LintFacts) -> Iterator[Shown]:
    """Find the operator at which loading ended although other kernels of it are there: its types have none.

    ONNX Runtime does not always say the operator's domain.
    """
    missing = facts.kernels.missing if facts.kernels else None
    if missing is None or facts.kernels is None or missing[0][1] in {name for _, name in facts.kernels.without}:
        return
    operator, name = missing
    nodes = [node for node in _nodes(facts, operator) if name in {"", node.name}]
    types = sorted({", ".join(value.element_type or "unknown type" for value in node.inputs) for node in nodes})
    yield name or operator[1], f"no CPU kernel of {_words(operator)} for {'; '.join(types) or '?'}"


def _nodes(facts: LintFacts, operator: Operator) -> Iterator[graph_facts.NodeFacts]:
    return (node for node in facts.graph.nodes if (node.domain, node.operator) == operator)


def _words(operator: Operator) -> str:
    return f"{operator[0]} {operator[1]}"


@_rule("not-in-minimal-builds", kind=OperatorsError, fix=EXPORT_FOR_INFERENCE)
def _not_in_minimal_builds(facts: LintFacts) -> Iterator[Shown]:
    for node, words in not_in_minimal_builds(facts.graph.nodes):
        yield node.place, f"{words}, which the full runtime alone has"


@_rule("other-provider-only", kind=OperatorsError)
def _other_provider_only(facts: LintFacts) -> Iterator[Shown]:
    for operator in facts.kernels.without if facts.kernels else ():
        if operator not in (facts.kernels.unheard if facts.kernels else ()):
            yield _shown(facts, operator, "has no CPU kernel, for whatever types")


def _shown(facts: LintFacts, operator: Operator, words: str) -> Shown:
    nodes = list(_nodes(facts, operator))
    place = nodes[0].place if nodes else _words(operator)
    return (place, f"{_words(operator)} {words} ({len(nodes)} of the nodes)")


@_rule("unknown-operator", kind=OperatorsError)
def _unknown_operator(facts: LintFacts) -> Iterator[Shown]:
    for operator in facts.kernels.unheard if facts.kernels else ():
        yield _shown(facts, operator, f"is not known to ONNX Runtime {facts.version}")


@_rule("unnamed-value")
def _unnamed(facts: LintFacts) -> Iterator[Shown]:
    for kind, position, value in _ends(facts):
        if not value.name:
            yield f"{kind} {position}", f"{kind} {position} has no name"


def _ends(facts: LintFacts) -> Iterator[tuple[str, int, TensorInfo]]:
    model = facts.graph.model
    kinds: Iterable[tuple[str, tuple[TensorInfo, ...]]] = (("input", model.inputs), ("output", model.outputs))
    for kind, values in kinds:
        yield from ((kind, position, value) for position, value in enumerate(values))


MACHINE: Final = re.compile(
    r"\d+"
    r"|(input|output|args?|kwargs|x|var|tensor|l_|getitem|primals|tangents)[._]\d+"
    r"|(onnx|aten|prim|torch_nn|_val)[:_]*\S*[:_]\d+"
    r"|.*::\S*"
    r"|(serving_default_\S*|StatefulPartitionedCall|PartitionedCall)(:\d+)?"
    r"|\S+:\d+"
)
"""What exporters call a value for which the author gave no name: PyTorch's numbers and traces, TensorFlow's ports."""


@_rule("machine-named-value")
def _machine_named(facts: LintFacts) -> Iterator[Shown]:
    for kind, _, value in _ends(facts):
        if MACHINE.fullmatch(value.name):
            yield value.name, f"the {kind} is called '{value.name}'"


@_rule("unnamed-dimension")
def _unnamed_dimension(facts: LintFacts) -> Iterator[Shown]:
    for value in facts.graph.model.inputs:
        for axis, size in enumerate(value.shape or ()):
            if size is None or size in graph_facts.NAMELESS:
                yield value.name, f"dimension {axis} of input '{value.name}' is open and has no name"


@_rule("einsum")
def _einsum(facts: LintFacts) -> Iterator[Shown]:
    for node in facts.graph.nodes:
        if node.operator == "Einsum" and node.domain == "ai.onnx":
            equation = node.attribute("equation")
            yield node.place, f"Einsum '{equation}'{_as_convolution(node, equation)}"


CONTRACTION: Final = re.compile(r"\s*([a-zA-Z.\s]+),([a-zA-Z.\s]+)->([a-zA-Z.\s]+)")


def _as_convolution(node: graph_facts.NodeFacts, equation: str) -> str:
    """Recognise a product with a weight matrix over one axis, which is what a convolution of length one does."""
    found = CONTRACTION.fullmatch(equation)
    if found is None or len(node.inputs) != 2 or not node.constants:
        return ""
    first, second, result = ("".join(part.split()) for part in found.groups())
    value, weight = (second, first) if node.inputs[0].name in node.constants else (first, second)
    summed, added = set(value) & set(weight) - set(result), (set(weight) - set(value)) & set(result)
    if len(weight) == 2 and len(summed) == len(added) == 1:
        return ": a convolution of length 1 with the same weights does this for any length"
    return ""


@_rule("matmul-between-transposes")
def _transposed_product(facts: LintFacts) -> Iterator[Shown]:
    makers = _makers(facts)
    for node in facts.graph.nodes:
        product = _product(node, makers) if node.operator == "Transpose" and not node.scope else None
        if product is not None:
            before = _maker(product, makers)
            if before is not None and before.operator == "Transpose" and _undo(before, node):
                words = f"'{product.place}' stands between two Transposes: a convolution of length 1 without them"
                yield product.place, words


def _product(node: graph_facts.NodeFacts, makers: dict[str, graph_facts.NodeFacts]) -> graph_facts.NodeFacts | None:
    """Return the product with a weight matrix that a node reads, as it is or with a bias added."""
    found = _maker(node, makers)
    if found is not None and found.operator == "Add" and len(found.constants) == 1:
        found = next((makers[value.name] for value in found.inputs if value.name in makers), None)
    return found if found is not None and found.operator == "MatMul" and found.constants else None


def _maker(node: graph_facts.NodeFacts, makers: dict[str, graph_facts.NodeFacts]) -> graph_facts.NodeFacts | None:
    return makers.get(node.inputs[0].name) if node.inputs else None


def _undo(first: graph_facts.NodeFacts, second: graph_facts.NodeFacts) -> bool:
    orders = [each.attribute("perm").split(",") for each in (first, second)]
    if not all(number.isdecimal() for order in orders for number in order) or len(orders[0]) != len(orders[1]):
        return False
    one, other = ([int(number) for number in order] for order in orders)
    return all(number < len(one) for number in other) and [one[number] for number in other] == list(range(len(one)))


@_rule("fixed-reshape")
def _pinned_reshape(facts: LintFacts) -> Iterator[Shown]:
    if not graph_facts.dynamic_dimensions(facts.graph.model.inputs):
        return
    values = {weight.name: weight.values for weight in facts.graph.weights}
    for node in facts.graph.nodes:
        shape = values.get(node.inputs[1].name, ()) if node.operator == "Reshape" and len(node.inputs) > 1 else ()
        sizes = node.inputs[0].shape or () if shape else ()
        if shape and min(shape) > 0 and not all(isinstance(size, int) for size in sizes):
            yield node.place, f"Reshape to {list(shape)}, of a value whose size is not fixed"


@_rule("float64")
def _float64(facts: LintFacts) -> Iterator[Shown]:
    yield from _hot(facts, "float64")


WEIGHT_BYTES: Final = 64 * 1024


def _hot(facts: LintFacts, element_type: str) -> Iterator[Shown]:
    for node in facts.graph.nodes:
        if node.operator not in {"Cast", "Constant"} and _is_hot(node, element_type):
            yield node.place, f"{node.operator} computes in {element_type}"
    for weight in facts.graph.weights:
        if weight.element_type == element_type and weight.size_bytes >= WEIGHT_BYTES:
            yield weight.name, f"{weight.size_bytes:,} bytes of weights are {element_type}"


HEAVY: Final = frozenset({
    "Conv", "ConvTranspose", "Einsum", "Gemm", "GRU", "LSTM", "MatMul", "RNN",
})  # fmt: skip
MOST_ELEMENTS: Final = 4096
"""Fewer are shapes and indices, whose cost nobody sees."""


def _is_hot(node: graph_facts.NodeFacts, element_type: str) -> bool:
    made = [value for value in node.outputs if value.element_type == element_type]
    if node.operator in HEAVY:
        return bool(made)
    taken = [value for value in node.inputs if value.element_type == element_type and value.name not in node.constants]
    return (
        bool(made and taken)
        and max((graph_facts.elements(value) or 0 for value in (*made, *taken)), default=0) >= MOST_ELEMENTS
    )


@_rule("int64")
def _int64(facts: LintFacts) -> Iterator[Shown]:
    yield from _hot(facts, "int64")


ENOUGH: Final = 0.75
"""Upstream's checker recommends a provider from there on, when the nodes are one partition."""


@_rule("mobile-partitions")
def _partitions(facts: LintFacts) -> Iterator[Shown]:
    for each in facts.providers or ():
        if each.partitions != 1 or each.supported < each.nodes * ENOUGH:
            yield each.name, _providers_words(each)


MOST_LISTED: Final = 6


def _providers_words(facts: ProviderFacts) -> str:
    words = f"{facts.name} takes {facts.supported} of {facts.nodes} nodes in {counted(facts.partitions, 'partition')}"
    if (facts.fixed_supported, facts.fixed_partitions) != (facts.supported, facts.partitions):
        words += f"; with all shapes fixed {facts.fixed_supported} in {counted(facts.fixed_partitions, 'partition')}"
    if facts.unsupported:
        more = len(facts.unsupported) - MOST_LISTED
        words += f"; it has no {', '.join(facts.unsupported[:MOST_LISTED])}{f' and {more} more' if more > 0 else ''}"
    return words


CONTROL: Final = ("If", "Loop", "Scan", "SequenceMap")


@_rule("control-flow")
def _control_flow(facts: LintFacts) -> Iterator[Shown]:
    for node in facts.graph.nodes:
        if node.operator in CONTROL and node.domain == "ai.onnx":
            yield node.place, f"{node.operator} contains graphs"


WORTH_BYTES: Final = 16 * 1024
FEW_NODES: Final = 4
"""What more nodes use is hardly removed."""


@_rule("costly-operator")
def _costly_operators(facts: LintFacts) -> Iterator[Shown]:
    shared = {_library_shown(domain, name) for domain, name in facts.elsewhere}
    uses = Counter(_library_shown(node.domain, node.operator) for node in facts.graph.nodes)
    for name, size in facts.library or ():
        if size >= WORTH_BYTES and 0 < uses[name] <= FEW_NODES and name not in shared:
            count = counted(uses[name], "node")
            yield name, f"removing {name} ({count}) saves {size / 1024:.0f} KiB of the library"


def _library_shown(domain: str, name: str) -> str:
    return name if domain == "ai.onnx" else f"{domain}:{name}"


@_rule("random-output")
def _random_output(facts: LintFacts) -> Iterator[Shown]:
    for node in facts.graph.nodes:
        if node.operator in BY_CHANCE and node.domain == "ai.onnx":
            seeded = " from a seed, in an order that depends on the runs before" if node.attribute("seed") else ""
            yield node.place, f"{node.operator} draws numbers{seeded}"


@_rule("device-locale", fix=refusals.LOCALE_HINT)
def _device_locale(facts: LintFacts) -> Iterator[Shown]:
    for node in facts.graph.nodes:
        if locale := graph_facts.locale_of(node):
            yield node.place, f"{node.operator} needs the locale '{locale}' on every device"


@_rule("training-mode")
def _training_mode(facts: LintFacts) -> Iterator[Shown]:
    switched_on = {weight.name for weight in facts.graph.weights if weight.values == (1,)}
    for node in facts.graph.nodes:
        on = any(value.name in switched_on for value in node.inputs[2:])
        if on and (node.domain, node.operator) == ("ai.onnx", "Dropout"):
            yield node.place, "Dropout is in training mode"


DOMINANT_BYTES: Final = 1_000_000
DOMINANT: Final = 0.5


@_rule("dominant-weight")
def _dominant(facts: LintFacts) -> Iterator[Shown]:
    total = sum(weight.size_bytes for weight in facts.graph.weights)
    for weight in facts.graph.weights:
        if weight.size_bytes >= max(DOMINANT_BYTES, total * DOMINANT):
            share = f"{weight.size_bytes:,} of {total:,} bytes of weights"
            shape = "x".join(map(str, weight.dimensions))
            yield weight.name, f"'{weight.name}' ({weight.element_type} {shape}) is {share}"


WASTED_BYTES: Final = 1024


@_rule("duplicate-weights")
def _duplicates(facts: LintFacts) -> Iterator[Shown]:
    groups: dict[str, list[graph_facts.WeightFacts]] = {}
    for weight in facts.graph.weights:
        if weight.digest:
            groups.setdefault(weight.digest, []).append(weight)
    for group in groups.values():
        wasted = sum(weight.size_bytes for weight in group[1:])
        if wasted >= WASTED_BYTES:
            words = f"{len(group)} tensors are equal, {wasted:,} bytes too many: {_names(group)}"
            yield group[0].name, words


def _names(group: list[graph_facts.WeightFacts]) -> str:
    shown = ", ".join(f"'{weight.name}'" for weight in group[:3])
    return f"{shown} and {len(group) - 3} more" if len(group) > 3 else shown


LONGEST: Final = 80
PATH: Final = re.compile(
    r"(?:/(?:home|Users|root|mnt|opt|usr|tmp|var|data|work|workspace|content|srv|media|private|builds?)/[^\s\"':;,]+"
    r"|\b[A-Za-z]:[\\/][^\s\"':;,]+"
    r"|\bFile \"[^\"]+\""
    r"|[^\s\"'()<>:;,]+\.py(?=[(:]\d+|\"|', line))"
)
"""Folders of Unix, of Windows, and the lines of Python's traces; a node's own name such as `/conv/Conv` is none."""


@_rule("source-path")
def _source_paths(facts: LintFacts) -> Iterator[Shown]:
    places: dict[str, list[str]] = {}
    for place, text in facts.graph.texts:
        if not _is_module(place, text) and (found := PATH.search(text)):
            places.setdefault(found[0], []).append(place)
    for path, shown in places.items():
        more = f" and {len(shown) - 1:,} more places" if len(shown) > 1 else ""
        short = path if len(path) <= LONGEST else f"{path[:LONGEST]}..."
        yield shown[0], f"the {shown[0]}{more} shows '{short}'"


def _is_module(place: str, text: str) -> bool:
    """Tell the name that PyTorch's exporter gives a node, modules and operator (`/data/conv/Relu`), from a path."""
    _, of, operator = place.partition("name of ")
    return bool(of) and re.fullmatch(rf"/\S*/{re.escape(operator)}(_\d+)?", text) is not None


BY_CODE: Final = {rule.code: rule for rule in RULES}
LEVELS: Final = ("error", "advice")
WHOLE: Final = "model"
"""The place of what is said of a model as a whole."""


@dataclass(frozen=True, kw_only=True)
class ModelFindings:
    """The findings of one model; `not_checked` says in words what could not be looked at, and why.

    `file` is where a code review is to show them: the model's, or the buildspec of a model that is in no repository.
    `steps` are those after which it was judged.
    """

    model: str
    file: str
    sha256: str
    ort_version: str
    findings: tuple[LintFinding, ...]
    steps: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[LintFinding, ...]:
        """The findings that are errors."""
        return tuple(finding for finding in self.findings if finding.level == "error")


def judge(facts: LintFacts) -> tuple[LintFinding, ...]:
    """Return what the rules find, errors first, then in the order of the table; places in order, each thing once."""
    found = []
    for rule in RULES:
        made = sorted(set(rule.check(facts)))
        found += [LintFinding(code=rule.code, level=rule.level, place=place, words=words) for place, words in made]
    return tuple(sorted(found, key=lambda finding: LEVELS.index(finding.level)))


def lines_of(model: ModelFindings, most: int | None) -> tuple[str, ...]:
    """Write a model's findings for people: by rule, with `most` places of each or all, then why and how to mend it."""
    lines = []
    for code, group in groupby(model.findings, key=lambda finding: finding.code):
        found, rule = tuple(group), BY_CODE.get(code)
        if rule is None:  # it was not judged at all
            lines += [f"error: {code}: {found[0].words}"]
            continue
        lines.append(f"{rule.level}: {code}: {rule.title}")
        lines += [f"  {placed(finding)}" for finding in found[:most]]
        if most is not None and len(found) > most:
            lines.append(f"  and {len(found) - most:,} more")
        lines += [f"  why: {rule.why}", f"  fix: {rule.fix}"]
    lines += [f"not checked: {words}" for words in model.not_checked]
    return tuple(lines)


def placed(finding: LintFinding) -> str:
    """Write a finding with its place, unless that stands in the words already, or is all of the model."""
    told = finding.place in finding.words or finding.place == WHOLE
    return finding.words if told else f"{finding.place}: {finding.words}"
