"""The answer to whether models would run on a runtime that users have, and its words. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, Literal

from ortrim.analysis.compat import installed
from ortrim.buildspec.problems import toml_string
from ortrim.compiling.dead_kernels import FLOAT8, FLOAT8_PREFIX, SPARSE
from ortrim.models.convert import Conversion
from ortrim.models.operators import (
    GLOBAL_TYPES,
    NCHWC,
    ModelUses,
    OperatorId,
    OperatorTypes,
    OperatorUse,
    RequiredOperators,
    render_config,
    required_operators,
    unite_types,
)

"""Operators whose weights lie in blocks as large as the converting processor likes them (upstream's issue 26174)."""
COMPILED_OUT: Final = {installed.FLOAT4: "4-bit floats", FLOAT8: "8-bit floats", SPARSE: "sparse tensors"}
"""Kinds of values that a runtime may be compiled without whatever its operators are. An operator configuration alone
does not say which."""
Missing = Literal["operator", "opset", "type"]


@dataclass(frozen=True, kw_only=True)
class OperatorFinding:
    """One operator of a model: what it works on, and what of it the runtime lacks, if anything.

    `missing` is None when all is there; `detail` says in words what is missing. `node` is a node that shows it.
    """

    operator: OperatorId
    types: tuple[str, ...]
    missing: Missing | None = None
    detail: str = ""
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a runtime makes of a model: its operators, what else keeps it from loading, and what is not known."""

    operators: tuple[OperatorFinding, ...] = ()
    obstacles: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether nothing is missing."""
        return not self.obstacles and all(finding.missing is None for finding in self.operators)

    @property
    def missing(self) -> tuple[OperatorFinding, ...]:
        """The operators of which something is missing."""
        return tuple(finding for finding in self.operators if finding.missing)


def in_doubt(runtime: installed.InstalledRuntime, model: ModelUses) -> tuple[OperatorId, ...]:
    """Return the operators that are there at other opsets alone, so that the kernels' versions decide."""
    return tuple(each for each in _operators(runtime, model) if not runtime.has(each, {}) and runtime.opsets_of(each))


def judge(
    runtime: installed.InstalledRuntime, model: ModelUses, kernels: installed.KernelVersions, *, converted: bool = False
) -> Judgement:
    """Compare a model with a runtime; `kernels` are the versions of at least the operators `in_doubt`.

    `converted` says that it was converted for this runtime, whose NCHWc block size it has then.
    """
    by_operator = {operator: tuple(uses) for operator, uses in groupby(model.uses, key=lambda use: use.operator)}
    operators = _operators(runtime, model)
    return Judgement(
        operators=tuple(_finding(runtime, operator, by_operator.get(operator, ()), kernels) for operator in operators),
        obstacles=tuple(_obstacles(runtime, model)),
        unknowns=tuple(_unknowns(runtime, model, converted=converted)),
    )


def _operators(runtime: installed.InstalledRuntime, model: ModelUses) -> tuple[OperatorId, ...]:
    """Return the operators that a model takes on this runtime, those of saved optimizations if it may apply them."""
    saved = () if runtime.extended is False else model.saved
    return tuple(sorted({*(use.operator for use in model.uses), *saved}))


def _finding(
    runtime: installed.InstalledRuntime,
    operator: OperatorId,
    uses: tuple[OperatorUse, ...],
    kernels: installed.KernelVersions,
) -> OperatorFinding:
    types = tuple(sorted({name for use in uses for name in (*use.inputs, *use.outputs) if name}))
    if not runtime.has(operator, kernels):
        missing, detail = _missing_operator(runtime, operator)
        node = uses[0].node if uses else ""
        return OperatorFinding(operator=operator, types=types, missing=missing, detail=detail, node=node)
    for use in uses:
        if detail := _missing_types(runtime, use):
            return OperatorFinding(operator=operator, types=types, missing="type", detail=detail, node=use.node)
    return OperatorFinding(operator=operator, types=types)


def _missing_operator(runtime: installed.InstalledRuntime, operator: OperatorId) -> tuple[Missing, str]:
    if opsets := runtime.opsets_of(operator):
        return "opset", f"opset {operator.opset}, there for {', '.join(map(str, opsets))}"
    others = any(each.domain == operator.domain for each in runtime.present)
    return "operator", "the operator" if others else f"the operator, as all of {operator.domain}"


def _missing_types(runtime: installed.InstalledRuntime, use: OperatorUse) -> str:
    """Return in words the types that one use lacks; empty when it lacks none."""
    if (use.operator.domain, use.operator.name) == installed.ONE_HOT:
        if installed.one_hot_fits(runtime.operators, use.inputs):
            return ""
        return f"type {', '.join(installed.one_hot_triple(use.inputs))} for indices, values, depth"
    return "; ".join(_slot_words(runtime, use, slot) for slot in lacking_slots(runtime, use))


def lacking_slots(runtime: installed.InstalledRuntime, use: OperatorUse) -> tuple[installed.Slot, ...]:
    """Return the inputs and outputs of a use whose types a runtime does not have."""
    slots = installed.SLOTS.get((use.operator.domain, use.operator.name), ())
    return tuple(slot for slot in slots if not _takes(runtime, use, slot))


def type_at(use: OperatorUse, slot: installed.Slot) -> str:
    """Return the element type at an input or output; empty when there is none."""
    direction, index = slot
    types = use.inputs if direction == "input" else use.outputs
    return types[index] if index < len(types) else ""


def _takes(runtime: installed.InstalledRuntime, use: OperatorUse, slot: installed.Slot) -> bool:
    allowed = installed.allowed_types(runtime, use.operator, slot)
    return allowed is None or type_at(use, slot) in {"", *allowed}


def _slot_words(runtime: installed.InstalledRuntime, use: OperatorUse, slot: installed.Slot) -> str:
    allowed = installed.allowed_types(runtime, use.operator, slot)
    return f"type {type_at(use, slot)} for {slot[0]} {slot[1]}, there: {', '.join(sorted(allowed or ())) or 'none'}"


def _obstacles(runtime: installed.InstalledRuntime, model: ModelUses) -> Iterator[str]:
    if model.format_version not in installed.FORMAT_VERSIONS:
        readable = " and ".join(installed.FORMAT_VERSIONS)
        yield f"it has version {model.format_version or 'unknown'} of ORT format; the runtime reads {readable}"
    for kind, words in _rare_kinds(model):
        if kind in runtime.without:
            yield f"it has {words}, and the runtime is compiled without {COMPILED_OUT[kind]}"


def _rare_kinds(model: ModelUses) -> Iterator[tuple[str, str]]:
    """Yield each kind in `COMPILED_OUT` that a model has, and what of it that is.

    Every value counts, one that no operator reads too: a library without exceptions ends the process at the type of an
    output, whether or not a node makes it.
    """
    for kind, prefix in ((installed.FLOAT4, "Float4"), (FLOAT8, FLOAT8_PREFIX)):
        if types := [name for name in model.element_types if name.startswith(prefix)]:
            yield kind, f"values of {', '.join(types)}"
    if model.sparse:
        yield SPARSE, "sparse weights"


def _unknowns(runtime: installed.InstalledRuntime, model: ModelUses, *, converted: bool) -> Iterator[str]:
    if runtime.extended is not False and (names := _limited(runtime, model.saved)):
        yield f"the types of what saved optimizations make: {', '.join(names)}"
    if not converted and any(use.operator.domain == NCHWC for use in model.uses):
        yield f"{_layout_question(runtime)}: the converting processor's is baked into the model"
    if runtime.extended is None and (kinds := [COMPILED_OUT[kind] for kind, _ in _rare_kinds(model)]):
        yield f"whether the runtime is compiled without {' and '.join(kinds)}, which the model has"
    listed = frozenset(runtime.operators.globally_allowed_types)
    doubtful = {
        use.operator.name
        for use in model.uses
        if (use.operator.domain, use.operator.name) not in {*installed.SLOTS, installed.ONE_HOT}
        and not listed.issuperset({*use.inputs[:1], *use.outputs[:1]} - {""})
    }
    if listed and doubtful:
        yield f"whether the runtime's globally allowed types leave out kernels of {', '.join(sorted(doubtful))}"


def _layout_question(runtime: installed.InstalledRuntime) -> str:
    if runtime.channel_block is None:
        return "whether users' processors have the layout"
    return f"whether its channels lie in blocks of {runtime.channel_block}, as the runtime takes them"


def _limited(runtime: installed.InstalledRuntime, operators: Iterable[OperatorId]) -> list[str]:
    """Return the names of operators that a runtime has for some types alone."""
    limits = dict(runtime.operators.types)
    return sorted({each.name for each in operators if (each.domain, each.name) in limits})


DEFAULT_CONVERSION: Final = Conversion()
"""Style and level of a model whose buildspec says nothing of them."""


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """What a runtime makes of one model.

    `conversion` are the conversion's words, empty for a model that was in ORT format already. `obstacles`
    keep it from loading whatever operators there are; `conditions` are what its session has to be like, and `unknowns`
    could not be found out. `remedies` were tried, and each of them makes the model fit. Where all commands refuse the
    model, `code` and `exit_code` are theirs.
    """

    model: str
    fits: bool
    conversion: str = ""
    operators: tuple[OperatorFinding, ...] = ()
    obstacles: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    code: str = ""
    exit_code: int = 0


@dataclass(frozen=True, kw_only=True)
class CompatibilityAnswer:
    """What a runtime makes of several models.

    `change` is operator configuration that lets it run all of them, a new line for each operator's domain and opset,
    and `replacement` the line that takes the place of that of globally allowed types; empty when nothing of the kind
    is missing. `buildspec` are the same in the words of a buildspec.
    """

    schema: Literal["ortrim-compatibility/2"] = "ortrim-compatibility/2"
    runtime: str
    ort_version: str
    targets: tuple[str, ...]
    fits: bool
    models: tuple[ModelAnswer, ...]
    change: str = ""
    replacement: str = ""
    buildspec: str = ""


def conversion_words(conversion: Conversion) -> str:
    """Return style and level in words, and the layout of a model that has one."""
    layout = f", layout '{conversion.layout}'" if conversion.layout != DEFAULT_CONVERSION.layout else ""
    return f"style '{conversion.style}', level '{conversion.level}'{layout}"


def buildspec_lines(name: str, path: Path, conversion: Conversion) -> str:
    """Return the lines that add a model to a buildspec."""
    lines = ["[[models]]", f'name = "{name}"', f"path = {toml_string(str(path))}"]
    usual = asdict(DEFAULT_CONVERSION)
    lines += [f'{key} = "{value}"' for key, value in asdict(conversion).items() if value != usual[key]]
    return "".join(f"{line}\n" for line in lines)


def missing_lines(answer: ModelAnswer) -> tuple[str, ...]:
    """Return all that keeps a model from running, each in one line."""
    operators = (
        f"{each.operator.domain} {each.operator.name} ({each.operator.opset}) is missing: {each.detail}"
        for each in answer.operators
        if each.missing
    )
    return (*answer.obstacles, *operators)


_DOMAINS: Final = frozenset({"ai.onnx", "ai.onnx.ml", "com.microsoft", NCHWC, "com.ms.internal.nhwc"})
Lacking = list[tuple[OperatorId, tuple[OperatorUse, ...]]]
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def can_be_built_in(operator: OperatorId) -> bool:
    """Whether a build of ONNX Runtime can have an operator at all: one of a custom library it cannot."""
    return operator.domain in _DOMAINS and _NAME.fullmatch(operator.name) is not None


def smallest_change(
    runtime: installed.InstalledRuntime, judged: Iterable[tuple[ModelUses, Judgement]]
) -> RequiredOperators | None:
    """Return what to add to the runtime's operators so that it runs models; None when nothing of that kind is missing.

    Each operator has all the types that it then needs, the old ones too: upstream takes a later line in place of an
    earlier one. So have globally allowed types, whose line there can be but one. Operators that no build can have are
    left out.
    """
    lacking = [
        (each.operator, tuple(use for use in model.uses if use.operator == each.operator))
        for model, judgement in judged
        for each in judgement.missing
        if can_be_built_in(each.operator)
    ]
    if not lacking:
        return None
    if runtime.operators.globally_allowed_types:
        return _with_global_types(runtime, lacking)
    return _with_own_types(runtime, lacking)


def written(runtime: installed.InstalledRuntime, change: RequiredOperators | None) -> tuple[str, str]:
    """Return the lines of a change to append to a configuration, and what takes the place of its global types.

    A parser refuses a second line of these. Both are empty where nothing is to be changed.
    """
    if change is None:
        return "", ""
    lines = render_config(change).splitlines(keepends=True)
    types = "".join(line for line in lines if line.startswith(GLOBAL_TYPES))
    same = change.globally_allowed_types == runtime.operators.globally_allowed_types
    return "".join(line for line in lines if not line.startswith("!")), "" if same else types


def _with_global_types(runtime: installed.InstalledRuntime, lacking: Lacking) -> RequiredOperators:
    """Return the operators, and the whole list of types: there is one line for all."""
    types = {type_at(use, slot) for _, uses in lacking for use in uses for slot in lacking_slots(runtime, use)}
    triples = {name for _, uses in lacking for use in uses for name in _triple(use)}
    everywhere = {*runtime.operators.globally_allowed_types, *types, *triples}
    operators = [] if runtime.operators.everything else [operator for operator, _ in lacking]
    return required_operators(
        operators, globally_allowed_types=everywhere, no_operators_means_all=runtime.operators.everything
    )


def _with_own_types(runtime: installed.InstalledRuntime, lacking: Lacking) -> RequiredOperators:
    types: dict[tuple[str, str], OperatorTypes] = {}
    there = {(each.domain, each.name) for each in runtime.operators.operators}
    for operator, uses in lacking:
        key = (operator.domain, operator.name)
        before = [types[key]] if key in types else [runtime.operators.types_of(*key)] if key in there else []
        types[key] = unite_types([*before, *map(_types_of, uses)])
    return required_operators([operator for operator, _ in lacking], types)


def _types_of(use: OperatorUse) -> OperatorTypes:
    """Return the types of one use that a configuration can limit."""
    if triple := _triple(use):
        return OperatorTypes(custom=(triple,))
    slots = installed.SLOTS.get((use.operator.domain, use.operator.name), ())
    return OperatorTypes(inputs=_slots(use, slots, "input"), outputs=_slots(use, slots, "output"))


def _slots(
    use: OperatorUse, slots: tuple[installed.Slot, ...], direction: str
) -> tuple[tuple[int, tuple[str, ...]], ...]:
    found = ((slot[1], type_at(use, slot)) for slot in slots if slot[0] == direction)
    return tuple((index, (name,)) for index, name in found if name)


def _triple(use: OperatorUse) -> tuple[str, ...]:
    return installed.one_hot_triple(use.inputs) if (use.operator.domain, use.operator.name) == installed.ONE_HOT else ()
