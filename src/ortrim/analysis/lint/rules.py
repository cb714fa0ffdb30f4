"""The table of rules. Pure.

- What the rules make of models: findings in order, each once. Pure.
"""

from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final, Literal

from ortrim.analysis.lint import graph_rules, runtime_rules
from ortrim.analysis.lint.findings import LintFacts, LintFinding, LintRule
from ortrim.errors import OperatorsError
from ortrim.models.refusals import BELOW_8_BITS, CAUSES, CRASH_HINT, LOAD_HINT, LOCALE_HINT

RULES: Final = (
    LintRule(
        code="does-not-load",
        level="error",
        title="the full runtime refuses the model",
        why="a model that the full runtime cannot load cannot be converted, and no trimmed runtime loads it",
        fix=LOAD_HINT,
        check=runtime_rules.does_not_load,
    ),
    *(
        LintRule(
            code=cause.code,
            level="error",
            title=cause.what,
            why="the full runtime refuses the model, and so does every trimmed one",
            fix=cause.hint,
            check=partial(runtime_rules.refused_for, cause),
            kind=cause.kind,
        )
        for cause in CAUSES
        if not cause.converted
    ),
    LintRule(
        code="crashes-runtime",
        level="error",
        title="the full runtime crashes or hangs",
        why="the application crashes or hangs with its runtime",
        fix=CRASH_HINT,
        check=runtime_rules.crashes,
    ),
    LintRule(
        code="does-not-run",
        level="error",
        title="an inference with the model's fixed sizes fails",
        why="the model loads, but it does not run",
        fix="run it where it was made with random inputs of these shapes, and export it again",
        check=runtime_rules.does_not_run,
    ),
    LintRule(
        code="dynamic-size-baked-in",
        level="error",
        title="a dynamic dimension works at only one size",
        why="the model declares any size as valid, and an application that uses another size fails at run time",
        fix="take sizes from x.shape as it is traced (no int(), no loop over them), or fix it (step fix-dimensions)",
        check=runtime_rules.baked_in_size,
    ),
    LintRule(
        code="dynamic-size-limited",
        level="advice",
        title="a dynamic dimension does not work at every size",
        why="a size that a kernel, a stride or a fixed Reshape does not allow ends in an error at run time",
        fix="document the sizes that work, or pad inside the model",
        check=runtime_rules.limited_size,
    ),
    LintRule(
        code="no-size-runs",
        level="advice",
        title="no tried size of the dynamic dimensions runs",
        why="either dimensions depend on each other, and their names do not say so, or only unusual sizes work",
        fix="give equal dimensions one name (dynamic_axes, step name-dimensions), or fix them (step fix-dimensions)",
        check=runtime_rules.no_size_runs,
    ),
    LintRule(
        code="unsupported-opset",
        level="error",
        title="an opset that the chosen runtime does not accept",
        why="the runtime refuses the model",
        fix="export with another opset, use onnx.version_converter, or choose another ONNX Runtime (--ort-version)",
        check=runtime_rules.opset,
    ),
    LintRule(
        code="unsupported-ir-version",
        level="error",
        title="what a newer IR version brought than the chosen runtime reads",
        why="the runtime refuses the model",
        fix="export it without newer element types and device settings, or choose another ONNX Runtime (--ort-version)",
        check=runtime_rules.ir_version,
    ),
    LintRule(
        code="weights-below-8-bits",
        level="error",
        title="weights of 4 or 2 bits, which ORT format does not hold",
        why="from 1.28 on ONNX Runtime refuses a model in ORT format with such weights",
        fix=BELOW_8_BITS,
        check=runtime_rules.weights_below_8_bits,
    ),
    LintRule(
        code="model-too-large",
        level="error",
        title="2 GB and more",
        why="a model in ORT format is one flatbuffer, whose limit is 2 GB",
        fix="quantize the model, or split it into several",
        check=runtime_rules.too_large,
    ),
    LintRule(
        code="near-2-gb",
        level="advice",
        title="close to 2 GB",
        why="constant folding and saved optimizations enlarge the file, whose limit is 2 GB",
        fix="quantize the model (step quantize), or convert it with level = 'basic'",
        check=runtime_rules.nearly_too_large,
    ),
    LintRule(
        code="external-data",
        level="advice",
        title="weights in another file",
        why="the model needs both files: downloads, caches and digests must cover both",
        fix="below 2 GB, save it as one: onnx.save(onnx.load(path), path)",
        check=runtime_rules.external_data,
    ),
    LintRule(
        code="no-kernel",
        level="error",
        title="no CPU kernel for these types",
        why="a trimmed runtime has the CPU's kernels; without one for its types the model does not load",
        fix="cast to a type that has a kernel, or export with another opset",
        check=runtime_rules.no_cpu_kernel,
        kind=OperatorsError,
    ),
    LintRule(
        code="other-provider-only",
        level="error",
        title="an operator of other execution providers",
        why="the CPU provider has no kernel for it; optimizing for a GPU creates such operators",
        fix="use the model as exported, before it was optimized for another device",
        check=runtime_rules.other_provider_only,
        kind=OperatorsError,
    ),
    LintRule(
        code="unknown-operator",
        level="error",
        title="an operator that ONNX Runtime does not know",
        why="it comes from a custom library, which ortrim cannot build in, or from a newer version",
        fix="export without it, or as a model function of ONNX's own operators",
        check=runtime_rules.unknown_operator,
        kind=OperatorsError,
    ),
    LintRule(
        code="unnamed-value",
        level="error",
        title="an input or output without a name",
        why="applications pass inputs and read outputs by name",
        fix="give names when exporting (input_names, output_names)",
        check=graph_rules.unnamed,
    ),
    LintRule(
        code="machine-named-value",
        level="advice",
        title="an input or output that the exporter named",
        why="such names change with the next export, and applications that use them break",
        fix="give names when exporting (input_names, output_names), or afterwards (step rename)",
        check=graph_rules.machine_named,
    ),
    LintRule(
        code="unnamed-dimension",
        level="advice",
        title="a dynamic dimension without a name",
        why="neither people nor shape inference can see which sizes must be equal",
        fix="name it when exporting (dynamic_axes={'input': {0: 'batch'}}), or afterwards (step name-dimensions)",
        check=graph_rules.unnamed_dimension,
    ),
    LintRule(
        code="einsum",
        level="advice",
        title="Einsum",
        why="it runs as transpositions and matrix products, which mobile providers do not support and quantizers skip",
        fix="write it as a convolution of length 1, a Linear layer or a matmul",
        check=graph_rules.einsum,
    ),
    LintRule(
        code="matmul-between-transposes",
        level="advice",
        title="a product between two transpositions",
        why="the data is copied twice without need, and code around it often fixes the length",
        fix="replace the Linear layer by a Conv1d with kernel_size=1 and the same weights",
        check=graph_rules.transposed_product,
    ),
    LintRule(
        code="fixed-reshape",
        level="advice",
        title="Reshape to a fixed shape in a dynamic model",
        why="it works only for the size that the model was exported with",
        fix="use -1 for one dimension and 0 (unchanged) for others: x.flatten(1), x.reshape(x.shape[0], -1)",
        check=graph_rules.pinned_reshape,
    ),
    LintRule(
        code="float64",
        level="advice",
        title="64-bit floats in most of the arithmetic",
        why="twice the memory and half the speed; many kernels exist only for 32 bits",
        fix="export with model.float(), and keep NumPy's float64 constants out of forward()",
        check=graph_rules.float64,
    ),
    LintRule(
        code="int64",
        level="advice",
        title="64-bit integers in most of the arithmetic",
        why="they are not vectorized, take twice the memory, and no mobile provider supports them",
        fix="compute in int32 or in floats; int64 is for shapes and indices",
        check=graph_rules.int64,
    ),
    LintRule(
        code="mobile-partitions",
        level="advice",
        title="a mobile execution provider supports few nodes, or many separate partitions",
        why="data is copied at each border; more than one partition is usually slower than the CPU alone",
        fix="use the CPU, or replace the operators named, and fix the shapes (step fix-dimensions)",
        check=runtime_rules.partitions,
    ),
    LintRule(
        code="control-flow",
        level="advice",
        title="control flow",
        why="optimizations stop at the inner graphs, partitions end there, and the runtime needs more code",
        fix="export the branch that is used (torch.jit.trace, a fixed flag), or unroll the loop",
        check=graph_rules.control_flow,
    ),
    LintRule(
        code="costly-operator",
        level="advice",
        title="an operator that takes much of the library",
        why="its code is in the library for only a few nodes",
        fix="replace it by operators that the model has anyway, or do its work outside of the model",
        check=runtime_rules.costly_operators,
    ),
    LintRule(
        code="random-output",
        level="advice",
        title="random outputs",
        why="two runs with the same input differ; parity is judged with the numbers as inputs, where that can be made",
        fix="make the random numbers an input",
        check=graph_rules.random_output,
    ),
    LintRule(
        code="device-locale",
        level="advice",
        title="a locale that every device must have",
        why="where it is absent, as in most containers, the library refuses the model or ends the application",
        fix=LOCALE_HINT,
        check=graph_rules.device_locale,
    ),
    LintRule(
        code="training-mode",
        level="error",
        title="exported in training mode",
        why="the outputs are those of training: random, or normalized by the statistics of one batch",
        fix="call model.eval() before exporting (training=TrainingMode.EVAL)",
        check=graph_rules.training_mode,
    ),
    LintRule(
        code="dominant-weight",
        level="advice",
        title="one tensor is most of the weights",
        why="it decides size and memory; often it is an embedding or a layer behind a flatten",
        fix="quantize this one (step quantize), cut the vocabulary, or pool before the flatten",
        check=graph_rules.dominant,
    ),
    LintRule(
        code="duplicate-weights",
        level="advice",
        title="the same tensor several times",
        why="each copy is in the file and in memory",
        fix="share one initializer among the nodes (step share-constants)",
        check=graph_rules.duplicates,
    ),
    LintRule(
        code="source-path",
        level="advice",
        title="paths of the exporting machine",
        why="they show users who made the model and where, and make equal exports differ",
        fix="strip doc strings, metadata and names of nodes, which ORT format keeps (step strip, with node_names)",
        check=graph_rules.source_paths,
    ),
)
"""All rules, in the order of the document."""
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


@dataclass(frozen=True, kw_only=True)
class Linted:
    """The findings of several models: the document of `--json`."""

    schema: Literal["ortrim-lint/1"] = "ortrim-lint/1"
    models: tuple[ModelFindings, ...]


def judge(facts: LintFacts) -> tuple[LintFinding, ...]:
    """Return what the rules find, errors first, then in the order of the table; places in order, each thing once."""
    found = []
    for rule in RULES:
        made = sorted(set(rule.check(facts)))
        found += [LintFinding(code=rule.code, level=rule.level, place=shown.place, words=shown.words) for shown in made]
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
