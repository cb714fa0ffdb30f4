"""Rules about operators that a trimmed runtime, whose one execution provider is the CPU's, cannot run.

- Rules about what operators cost in the size of the library.
- Rules about execution providers of phones, by the counts of upstream's own usability checker.
- Rules about how a model fares in the full runtime.
- Rules about what the chosen runtime reads at all: opsets, IR version, size, data beside the model.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ortrim.analysis.lint.findings import LintFacts, Operator, ProviderFacts, RunFacts, Shown
from ortrim.base.console import counted
from ortrim.models.graph_facts import NodeFacts, dynamic_dimensions
from ortrim.models.onnx_files import LARGEST_MODEL_BYTES, OLDEST_OPSET
from ortrim.models.refusals import Cause, cause_of
from ortrim.pins.runtime import needed_for_ir_version, needed_for_opset


def no_cpu_kernel(facts: LintFacts) -> Iterator[Shown]:
    """Find the operator at which loading ended although other kernels of it are there: its types have none.

    ONNX Runtime does not always say the operator's domain.
    """
    missing = facts.kernels.missing if facts.kernels else None
    if missing is None or facts.kernels is None or missing[0][1] in {name for _, name in facts.kernels.without}:
        return
    operator, name = missing
    nodes = [node for node in _nodes(facts, operator) if name in {"", node.name}]
    types = sorted({", ".join(value.element_type or "unknown type" for value in node.inputs) for node in nodes})
    yield Shown(place=name or operator[1], words=f"no CPU kernel of {_words(operator)} for {'; '.join(types) or '?'}")


def other_provider_only(facts: LintFacts) -> Iterator[Shown]:
    """Find operators that upstream has for other execution providers alone."""
    for operator in facts.kernels.without if facts.kernels else ():
        if operator not in (facts.kernels.unheard if facts.kernels else ()):
            yield _shown(facts, operator, "has no CPU kernel, for whatever types")


def unknown_operator(facts: LintFacts) -> Iterator[Shown]:
    """Find operators of which the runtime has never heard."""
    for operator in facts.kernels.unheard if facts.kernels else ():
        yield _shown(facts, operator, f"is not known to ONNX Runtime {facts.runtime.version}")


def _shown(facts: LintFacts, operator: Operator, words: str) -> Shown:
    nodes = list(_nodes(facts, operator))
    place = nodes[0].place if nodes else _words(operator)
    return Shown(place=place, words=f"{_words(operator)} {words} ({len(nodes)} of the nodes)")


def _nodes(facts: LintFacts, operator: Operator) -> Iterator[NodeFacts]:
    return (node for node in facts.graph.nodes if (node.domain, node.operator) == operator)


def _words(operator: Operator) -> str:
    return f"{operator[0]} {operator[1]}"


WORTH_BYTES: Final = 16 * 1024
FEW_NODES: Final = 4
"""What more nodes use is hardly removed."""


def costly_operators(facts: LintFacts) -> Iterator[Shown]:
    """Find operators of few nodes, and of no other model, whose code is large in a finished build."""
    shared = {_library_shown(domain, name) for domain, name in facts.elsewhere}
    uses = Counter(_library_shown(node.domain, node.operator) for node in facts.graph.nodes)
    for name, size in facts.library or ():
        if size >= WORTH_BYTES and 0 < uses[name] <= FEW_NODES and name not in shared:
            count = counted(uses[name], "node")
            yield Shown(place=name, words=f"removing {name} ({count}) saves {size / 1024:.0f} KiB of the library")


def _library_shown(domain: str, name: str) -> str:
    return name if domain == "ai.onnx" else f"{domain}:{name}"


ENOUGH: Final = 0.75
"""Upstream's checker recommends a provider from there on, when the nodes are one partition."""
MOST_LISTED: Final = 6


def partitions(facts: LintFacts) -> Iterator[Shown]:
    """Find providers that take the model in pieces, or too little of it to be worth it."""
    for each in facts.providers or ():
        if each.partitions != 1 or each.supported < each.nodes * ENOUGH:
            yield Shown(place=each.name, words=_providers_words(each))


def _providers_words(facts: ProviderFacts) -> str:
    words = f"{facts.name} takes {facts.supported} of {facts.nodes} nodes in {counted(facts.partitions, 'partition')}"
    if (facts.fixed_supported, facts.fixed_partitions) != (facts.supported, facts.partitions):
        words += f"; with all shapes fixed {facts.fixed_supported} in {counted(facts.fixed_partitions, 'partition')}"
    if facts.unsupported:
        more = len(facts.unsupported) - MOST_LISTED
        words += f"; it has no {', '.join(facts.unsupported[:MOST_LISTED])}{f' and {more} more' if more > 0 else ''}"
    return words


NEAR: Final = 0.75


def opset(facts: LintFacts) -> Iterator[Shown]:
    """Find opsets that the runtime does not take."""
    limits = facts.runtime.limits
    newest = {"ai.onnx": limits.opset, "ai.onnx.ml": limits.ml_opset} if limits else {}
    for domain, number in facts.graph.model.opsets:
        most, oldest = newest.get(domain), OLDEST_OPSET if domain == "ai.onnx" else 1
        too_new = most is not None and number > most
        if number < oldest or too_new:
            taken = f"{oldest} to {most}" if most is not None else f"{oldest} and up"
            words = f"opset {number} of {domain}; ONNX Runtime {facts.runtime.version} takes {taken}"
            needed = f"; {needed_for_opset(domain, number)}" if too_new else ""
            yield Shown(place=domain, words=words + needed)


def ir_version(facts: LintFacts) -> Iterator[Shown]:
    """Find what a newer IR version brought than the runtime reads; a number alone is lowered."""
    own, limits = facts.graph.model.least_ir_version, facts.runtime.limits
    if limits and own > limits.ir_version:
        reads = f"ONNX Runtime {facts.runtime.version} reads up to {limits.ir_version}"
        words = f"it uses what IR version {own} brought; {reads}; {needed_for_ir_version(own)}"
        yield Shown(place="model", words=words)


BELOW_8_BITS: Final = frozenset({"int4", "uint4", "int2", "uint2"})
REFUSED_SINCE: Final = (1, 28)
"""Found by trying the wheels of 1.24.4 to 1.32.0: "Unsupported tensor data type". Until then the types' numbers were
written although `ort.fbs` has no names for them, and read back."""


def weights_below_8_bits(facts: LintFacts) -> Iterator[Shown]:
    """Find weights of types that the runtime takes in ONNX format and not in ORT format."""
    if tuple(map(int, facts.runtime.version.split(".")[:2])) < REFUSED_SINCE:
        return
    for weight in facts.graph.weights:
        if weight.element_type in BELOW_8_BITS:
            words = f"weights of {weight.element_type}; ONNX Runtime {facts.runtime.version} reads none from ORT format"
            yield Shown(place=weight.name, words=words)


def too_large(facts: LintFacts) -> Iterator[Shown]:
    """Find a model that, with its data, is larger than a file in ORT format can be."""
    if (size := _size(facts)) > (most := LARGEST_MODEL_BYTES):
        yield Shown(place="model", words=f"{size:,} bytes with its data; a model in ORT format can have {most:,}")


def nearly_too_large(facts: LintFacts) -> Iterator[Shown]:
    """Find a model that a little growth, as when constants are folded, makes too large."""
    most = LARGEST_MODEL_BYTES
    if most * NEAR < (size := _size(facts)) <= most:
        yield Shown(place="model", words=f"{size:,} bytes with its data, of {most:,} that are possible")


def external_data(facts: LintFacts) -> Iterator[Shown]:
    """Find weights in files beside the model."""
    names = sorted({weight.external for weight in facts.graph.weights if weight.external})
    for name in names:
        count = sum(weight.external == name for weight in facts.graph.weights)
        yield Shown(place=name, words=f"the weights of {count} tensors lie in '{name}', not in the model's file")


def _size(facts: LintFacts) -> int:
    return facts.graph.model.size_bytes + facts.graph.external_bytes


@dataclass(frozen=True, kw_only=True)
class LintOutcome:
    """The sizes at which one dimension worked and failed, and the words of a failure."""

    worked: tuple[int, ...]
    failed: tuple[int, ...]
    words: str


def does_not_load(facts: LintFacts) -> Iterator[Shown]:
    """Find a model that the full runtime refuses for another reason than a kernel, or than what its header says."""
    told = facts.kernels is not None and facts.kernels.missing is not None
    told = told or any((*opset(facts), *ir_version(facts)))
    if facts.run and facts.run.load_failure and not told and cause_of(facts.run.load_failure) is None:
        yield Shown(place="model", words=facts.run.load_failure)


def refused_for(cause: Cause, facts: LintFacts) -> Iterator[Shown]:
    """Find a model that the full runtime refuses, or does not run, for a cause that is known."""
    failures = (facts.run.load_failure, *(trial.failure for trial in facts.run.trials)) if facts.run else ()
    for words in dict.fromkeys(failures):
        if cause_of(words) is cause:
            yield Shown(place="model", words=words)


def crashes(facts: LintFacts) -> Iterator[Shown]:
    """Find a model with which the full runtime crashes or does not come to an end."""
    if facts.run and facts.run.crash:
        yield Shown(place="model", words=facts.run.crash)


def does_not_run(facts: LintFacts) -> Iterator[Shown]:
    """Find a model of fixed sizes that does not run."""
    for trial in facts.run.trials if facts.run else ():
        if not trial.sizes and trial.failure and cause_of(trial.failure) is None:
            yield Shown(place="model", words=trial.failure)


def no_size_runs(facts: LintFacts) -> Iterator[Shown]:
    """Find a model of dynamic sizes that ran at none of those that were tried."""
    trials = [trial for trial in facts.run.trials if trial.sizes] if facts.run else []
    if trials and all(trial.failure and cause_of(trial.failure) is None for trial in trials):
        sizes = ", ".join(f"{name} = {size}" for name, size in trials[-1].sizes)
        words = f"none of {len(trials)} choices of sizes ran; with {sizes}: {trials[-1].failure}"
        yield Shown(place="model", words=words)


def baked_in_size(facts: LintFacts) -> Iterator[Shown]:
    """Find dynamic dimensions that run at a single size."""
    for name, outcome in _outcomes(facts).items():
        if len(outcome.worked) == 1 and len(outcome.failed) > 2:
            words = f"'{name}' runs at {outcome.worked[0]} alone, not at {_listed(outcome.failed)}: {outcome.words}"
            yield Shown(place=name, words=words)


def limited_size(facts: LintFacts) -> Iterator[Shown]:
    """Find dynamic dimensions that run at several sizes but not at all."""
    for name, outcome in _outcomes(facts).items():
        if len(outcome.worked) > 1 and outcome.failed:
            words = f"'{name}' runs at {_listed(outcome.worked)}, not at {_listed(outcome.failed)}: {outcome.words}"
            yield Shown(place=name, words=words)


def _outcomes(facts: LintFacts) -> Mapping[str, LintOutcome]:
    run = facts.run
    base = next((dict(trial.sizes) for trial in run.trials if trial.sizes and not trial.failure), None) if run else None
    if run is None or base is None:
        return {}
    names = dynamic_dimensions(facts.graph.model.inputs)
    return {name: _outcome(run, base, name) for name in names if name in base}


def _outcome(run: RunFacts, base: Mapping[str, int], name: str) -> LintOutcome:
    """Gather the runs in which a dimension was changed, alone or with all others: names for one size may differ."""
    worked: set[int] = set()
    failed: dict[int, str] = {}
    for trial in run.trials:
        sizes = dict(trial.sizes)
        alone = all(base.get(key) == size for key, size in sizes.items() if key != name)
        if name not in sizes or not (alone or len(set(sizes.values())) == 1):
            continue
        if trial.failure:
            failed[sizes[name]] = trial.failure
        else:
            worked.add(sizes[name])
    bad = sorted(size for size in failed if size not in worked)
    return LintOutcome(worked=tuple(sorted(worked)), failed=tuple(bad), words=failed[bad[-1]] if bad else "")


def _listed(sizes: tuple[int, ...]) -> str:
    return ", ".join(map(str, sizes))
