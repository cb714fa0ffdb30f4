"""`check-compat`: would models run on a runtime that users have, and what is the least that makes them."""

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Final, Literal

import onnx
from onnx import version_converter

from ortrim.analysis import compat_runtime as installed
from ortrim.base.cache import cache_folder
from ortrim.base.console import Console, first_lines
from ortrim.base.files import storage_errors
from ortrim.buildspec.buildspec import IN_PLACE, ModelSpec
from ortrim.buildspec.load import name_from
from ortrim.buildspec.problems import toml_string
from ortrim.compiling.dead_kernels import FLOAT8, FLOAT8_PREFIX, FLOAT16, FLOAT16_NAME, SPARSE
from ortrim.errors import ConvertError, Diagnostic, ExitCode, ModelError, OperatorsError, ToolError, UsageError
from ortrim.models.convert import Conversion, convert
from ortrim.models.full_runtime import FullRuntime, full_runtime
from ortrim.models.kernels import kernel_versions, load_refusal, loads_in_place
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.onnx_files import OLDEST_OPSET
from ortrim.models.operators import (
    GLOBAL_TYPES,
    NCHWC,
    ModelUses,
    OperatorId,
    OperatorTypes,
    OperatorUse,
    RequiredOperators,
    parse_config,
    render_config,
    required_operators,
    unite_types,
    uses_of,
)
from ortrim.models.ort_format import IDENTIFIER, read_uses
from ortrim.models.prepare import FACTS_LAYOUT, prepare
from ortrim.pins.runtime import limits_of, runtime_pins

COMPILED_OUT: Final = {
    installed.FLOAT4: "4-bit floats", FLOAT8: "8-bit floats", FLOAT16: "16-bit floats", SPARSE: "sparse tensors",
}  # fmt: skip
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
class ModelAnswer:
    """What a runtime makes of one model.

    `conversion` are the conversion's words, empty for a model that was in ORT format already. `obstacles`
    keep it from loading whatever operators there are; `conditions` are what its session has to be like, and `unknowns`
    could not be found out. `remedies` were tried, and each of them makes the model fit. Where all commands refuse the
    model, `code` and `exit_code` are theirs.
    """

    model: str = ""
    fits: bool
    conversion: str = ""
    operators: tuple[OperatorFinding, ...] = ()
    obstacles: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    code: str = ""
    exit_code: int = 0

    @property
    def missing(self) -> tuple[OperatorFinding, ...]:
        """The operators of which something is missing."""
        return tuple(finding for finding in self.operators if finding.missing)


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


def in_doubt(runtime: installed.InstalledRuntime, model: ModelUses) -> tuple[OperatorId, ...]:
    """Return the operators that are there at other opsets alone, so that the kernels' versions decide."""
    return tuple(each for each in _operators(runtime, model) if not runtime.has(each, {}) and runtime.opsets_of(each))


def judge(
    runtime: installed.InstalledRuntime, model: ModelUses, kernels: installed.KernelVersions, *, converted: bool = False
) -> ModelAnswer:
    """Compare a model with a runtime; `kernels` are the versions of at least the operators `in_doubt`.

    `converted` says that it was converted for this runtime, whose NCHWc block size it has then.
    """
    by_operator = {operator: tuple(uses) for operator, uses in groupby(model.uses, key=lambda use: use.operator)}
    operators = tuple(
        _finding(runtime, operator, by_operator.get(operator, ()), kernels) for operator in _operators(runtime, model)
    )
    obstacles = tuple(_obstacles(runtime, model))
    return ModelAnswer(
        fits=not obstacles and all(finding.missing is None for finding in operators),
        operators=operators,
        obstacles=obstacles,
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
    found = OperatorFinding(operator=operator, types=types)
    if not runtime.has(operator, kernels):
        node = uses[0].node if uses else ""
        if opsets := runtime.opsets_of(operator):
            words = f"opset {operator.opset}, there for {', '.join(map(str, opsets))}"
            return replace(found, missing="opset", detail=words, node=node)
        others = any(each.domain == operator.domain for each in runtime.present)
        words = "the operator" if others else f"the operator, as all of {operator.domain}"
        return replace(found, missing="operator", detail=words, node=node)
    for use in uses:
        if words := _missing_types(runtime, use):
            return replace(found, missing="type", detail=words, node=use.node)
    return found


def _missing_types(runtime: installed.InstalledRuntime, use: OperatorUse) -> str:
    """Return in words the types that one use lacks; empty when it lacks none."""
    if (use.operator.domain, use.operator.name) == installed.ONE_HOT:
        if installed.one_hot_fits(runtime.operators, use.inputs):
            return ""
        return f"type {', '.join(installed.one_hot_triple(use.inputs))} for indices, values, depth"
    lacking = (
        (type_at(use, slot), *slot, ", ".join(sorted(installed.allowed_types(runtime, use.operator, slot) or ())))
        for slot in lacking_slots(runtime, use)
    )
    return "; ".join(
        f"type {name} for {kind} {index}, there: {there or 'none'}" for name, kind, index, there in lacking
    )


def lacking_slots(runtime: installed.InstalledRuntime, use: OperatorUse) -> Iterator[installed.Slot]:
    """Yield the inputs and outputs of a use whose types a runtime does not have."""
    for slot in installed.SLOTS.get((use.operator.domain, use.operator.name), ()):
        allowed = installed.allowed_types(runtime, use.operator, slot)
        if allowed is not None and type_at(use, slot) not in {"", *allowed}:
            yield slot


def type_at(use: OperatorUse, slot: installed.Slot) -> str:
    """Return the element type at an input or output; empty when there is none."""
    direction, index = slot
    types = use.inputs if direction == "input" else use.outputs
    return types[index] if index < len(types) else ""


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
    for kind, prefix in ((installed.FLOAT4, "Float4"), (FLOAT8, FLOAT8_PREFIX), (FLOAT16, FLOAT16_NAME)):
        if types := [name for name in model.element_types if name.startswith(prefix)]:
            yield kind, f"values of {', '.join(types)}"
    if model.sparse:
        yield SPARSE, "sparse weights"


def _unknowns(runtime: installed.InstalledRuntime, model: ModelUses, *, converted: bool) -> Iterator[str]:
    limited = dict(runtime.operators.types) if runtime.extended is not False else {}
    if names := sorted({each.name for each in model.saved if (each.domain, each.name) in limited}):
        yield f"the types of what saved optimizations make: {', '.join(names)}"
    if not converted and any(use.operator.domain == NCHWC for use in model.uses):
        block = runtime.channel_block
        question = (
            "whether users' processors have the layout"
            if block is None
            else f"whether its channels lie in blocks of {block}, as the runtime takes them"
        )
        yield f"{question}: the converting processor's is baked into the model"
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


DEFAULT_CONVERSION: Final = Conversion()
"""Style and level of a model whose buildspec says nothing of them."""


def conversion_words(conversion: Conversion) -> str:
    """Return style and level in words, and the layout of a model that has one."""
    layout = f", layout '{conversion.layout}'" if conversion.layout != DEFAULT_CONVERSION.layout else ""
    return f"style '{conversion.style}', level '{conversion.level}'{layout}"


_DOMAINS: Final = frozenset({"ai.onnx", "ai.onnx.ml", "com.microsoft", NCHWC, "com.ms.internal.nhwc"})
Lacking = list[tuple[OperatorId, tuple[OperatorUse, ...]]]
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def smallest_change(
    runtime: installed.InstalledRuntime, judged: Iterable[tuple[ModelUses, ModelAnswer]]
) -> RequiredOperators | None:
    """Return what to add to the runtime's operators so that it runs models; None when nothing of that kind is missing.

    Each operator has all the types that it then needs, the old ones too: upstream takes a later line in place of an
    earlier one. So have globally allowed types, whose line there can be but one. Operators that no build can have are
    left out.
    """
    lacking = [
        (each.operator, tuple(use for use in model.uses if use.operator == each.operator))
        for model, answer in judged
        for each in answer.missing
        if each.operator.domain in _DOMAINS and _NAME.fullmatch(each.operator.name)
    ]
    if not lacking:
        return None
    if not runtime.operators.globally_allowed_types:
        return _with_own_types(runtime, lacking)
    uses = [use for _, found in lacking for use in found]
    types = {type_at(use, slot) for use in uses for slot in lacking_slots(runtime, use)}
    triples = {name for use in uses for name in _triple(use)}
    everything = runtime.operators.everything
    return required_operators(
        [] if everything else [operator for operator, _ in lacking],
        globally_allowed_types={*runtime.operators.globally_allowed_types, *types, *triples},
        no_operators_means_all=everything,
    )


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


def _with_own_types(runtime: installed.InstalledRuntime, lacking: Lacking) -> RequiredOperators:
    types: dict[tuple[str, str], OperatorTypes] = {}
    there = {(each.domain, each.name) for each in runtime.operators.operators}
    for operator, uses in lacking:
        key = (operator.domain, operator.name)
        before = [types[key]] if key in types else [runtime.operators.types_of(*key)] if key in there else []
        types[key] = unite_types([*before, *map(_types_of, uses)])
    return required_operators([operator for operator, _ in lacking], types)


def _types_of(use: OperatorUse) -> OperatorTypes:
    if triple := _triple(use):
        return OperatorTypes(custom=(triple,))
    slots = installed.SLOTS.get((use.operator.domain, use.operator.name), ())
    found = [(kind, index, name) for kind, index in slots if (name := type_at(use, (kind, index)))]
    inputs, outputs = (
        tuple((index, (name,)) for kind, index, name in found if kind == direction) for direction in ("input", "output")
    )
    return OperatorTypes(inputs=inputs, outputs=outputs)


def _triple(use: OperatorUse) -> tuple[str, ...]:
    return installed.one_hot_triple(use.inputs) if (use.operator.domain, use.operator.name) == installed.ONE_HOT else ()


class Trials:
    """Converts models as a build of one runtime would, and holds them against it."""

    def __init__(self, runtime: installed.InstalledRuntime) -> None:
        self.runtime = runtime

    @cached_property
    def full(self) -> FullRuntime:
        """The full runtime of the same version."""
        pins = runtime_pins(self.runtime.ort_version)
        return full_runtime(pins.version, pins.converter_requirements)

    @property
    def usual(self) -> Conversion:
        """How the runtime's own models are converted."""
        return next(iter(self.runtime.conversions), DEFAULT_CONVERSION)

    def prepare(self, path: Path) -> PreparedModel:
        """Return our own copy of a model."""
        root, version = cache_folder("models") / FACTS_LAYOUT, self.runtime.ort_version
        spec = ModelSpec(name=name_from(path) or "model", path=Path(path.name))
        return prepare(spec, base=path.parent, root=root, ort_version=version, where=str(path))

    def convert(self, model: PreparedModel, conversion: Conversion) -> OrtModel:
        """Return a model, so converted."""
        return convert(model, conversion, runtime=self.full, root=cache_folder("conversions"))

    def uses(self, converted: OrtModel) -> ModelUses:
        """Return what a model requires of a runtime."""
        uses = read_uses(converted.path)
        if not uses.saved or self.runtime.extended is False:
            return uses
        # The converter's configuration has what saved optimizations make, with types: both, applied and not.
        listed = uses_of(parse_config(converted.config, f"required operators of {converted.name}"))
        return replace(uses, uses=tuple(sorted({use: use for use in (*listed, *uses.uses)}.values())), saved=())

    def loading(self, path: Path) -> tuple[str, bool]:
        """Return why the full runtime does not load a model in ORT format, empty if it does; and whether in place."""
        folder = cache_folder("conversions")
        in_place = loads_in_place(path, runtime=self.full, folder=folder)
        return "" if in_place else load_refusal(path, runtime=self.full, folder=folder), in_place

    def judge(self, model: ModelUses, *, converted: bool = True) -> ModelAnswer:
        """Compare a model in ORT format with the runtime, one that `convert` made unless said otherwise."""
        doubt = {(each.domain, each.name) for each in in_doubt(self.runtime, model)}
        kernels = kernel_versions(doubt, runtime=self.full, folder=cache_folder("conversions")) if doubt else {}
        return judge(self.runtime, model, kernels, converted=converted)


def is_ort(path: Path) -> bool:
    """Whether a file is in ORT format already."""
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", where="--model", hint="check the path")
    with storage_errors(path), path.open("rb") as file:
        return file.read(8)[4:] == IDENTIFIER


LARGEST_BYTES: Final = 1 << 30
"""A protobuf message has 2 GB at most, and both models are in memory."""


def at_opset(model: Path, opset: int, destination: Path) -> bool:
    """Write a model converted to another opset of `ai.onnx`; False when ONNX's converter cannot do it."""
    try:
        converted = version_converter.convert_version(onnx.load(model), opset)
    except Exception:  # noqa: BLE001 - it raises RuntimeError and its own kinds for whatever it has no adapter for
        return False
    if converted.ByteSize() > LARGEST_BYTES:
        return False
    destination.write_bytes(converted.SerializeToString())
    return True


def since_versions(names: Iterable[str], opset: int) -> dict[str, int] | None:
    """Return the opset since which each operator of `ai.onnx` is as it is in `opset`; None when one is not in it."""
    try:
        return {name: onnx.defs.get_schema(name, opset, "").since_version for name in names}
    except onnx.defs.SchemaError:
        return None


LEVELS: Final = (DEFAULT_CONVERSION, Conversion(level="basic"), Conversion(level="disable"))
MOST_OPSETS: Final = 2
"""Opsets that are tried: the nearest that could do."""


def remedies(trials: Trials, model: PreparedModel, answer: ModelAnswer) -> Iterator[str]:
    """Yield what makes a model fit that does not: another conversion, or else an older or newer opset."""
    others = dict.fromkeys((*trials.runtime.conversions, *LEVELS))
    others.pop(trials.usual, None)
    found = False
    for conversion in others:
        if _fits(trials, model, conversion):
            found = True
            yield f"convert it with {conversion_words(conversion)}"
    if not found:
        yield from _opset_remedies(trials, model, answer)


def remedies_for_refused(trials: Trials, path: Path, refusal: Diagnostic) -> Iterator[str]:
    """Yield what makes a model fit whose opset is too new for the runtime's ONNX Runtime."""
    limits = limits_of(trials.runtime.ort_version)
    if limits is None or refusal.code != "unsupported-opset":
        return
    with _folder() as folder:
        changed = Path(folder) / "model.onnx"
        if at_opset(path, limits.opset, changed) and _fits_as_file(trials, changed):
            yield f"export it with opset {limits.opset} of ai.onnx"


def _opset_remedies(trials: Trials, model: PreparedModel, answer: ModelAnswer) -> Iterator[str]:
    for opset in _candidates(trials, model, answer)[:MOST_OPSETS]:
        with _folder() as folder:
            changed = Path(folder) / "model.onnx"
            if at_opset(model.path, opset, changed) and _fits_as_file(trials, changed):
                yield f"export it with opset {opset} of ai.onnx"
                return


def _candidates(trials: Trials, model: PreparedModel, answer: ModelAnswer) -> list[int]:
    """Return the opsets, nearest first, in which every operator of ONNX's own is as the runtime has it."""
    own = dict(model.facts.opsets).get("ai.onnx", 0)
    names = {each.operator.name for each in answer.operators if each.operator.domain == "ai.onnx"}
    wrong = any(each.missing in {"operator", "type"} for each in answer.missing)
    limits = limits_of(trials.runtime.ort_version)
    if answer.obstacles or wrong or not own or limits is None:
        return []
    others = (opset for opset in range(OLDEST_OPSET, limits.opset + 1) if opset != own)
    fitting = [opset for opset in others if _has_all(trials, names, opset)]
    return sorted(fitting, key=lambda opset: (abs(opset - own), opset))


def _has_all(trials: Trials, names: set[str], opset: int) -> bool:
    versions = since_versions(names, opset)
    return versions is not None and all(
        trials.runtime.has(OperatorId(domain="ai.onnx", opset=since, name=name), {}) for name, since in versions.items()
    )


def _fits_as_file(trials: Trials, path: Path) -> bool:
    try:
        model = trials.prepare(path)
    except ModelError:
        return False
    return _fits(trials, model, trials.usual)


def _fits(trials: Trials, model: PreparedModel, conversion: Conversion) -> bool:
    """Whether a model fits when it is so converted; a conversion that fails is no remedy."""
    try:
        return trials.judge(trials.uses(trials.convert(model, conversion))).fits
    except (ConvertError, ModelError, OperatorsError):
        return False


def _folder() -> tempfile.TemporaryDirectory[str]:
    with storage_errors(cache_folder("conversions")):
        return tempfile.TemporaryDirectory(dir=cache_folder("conversions"))


MOST_LINES: Final = 12


Checked = tuple[Path, ModelAnswer, ModelUses | None]
"""A model, its answer, and what it was found out from; None when the model could not be converted."""


def check_compatibility(
    runtime: Path, models: Sequence[Path], console: Console, *, ort_version: str | None = None
) -> CompatibilityAnswer:
    """Return what a runtime makes of models; a model in ONNX format is converted as the runtime's own were."""
    if not models:
        raise UsageError("no-model", "there is no model to check", hint="name one with --model")
    ready = [(path, is_ort(path)) for path in models]
    trials = Trials(installed.read_runtime(runtime, ort_version))
    checked = [_check_ort(trials, path) if ort else _check_onnx(trials, path, console) for path, ort in ready]
    return _answer(trials, checked)


def failure_of(answer: CompatibilityAnswer) -> Diagnostic | None:
    """Return the diagnostic with which the command ends; None when all models fit.

    The code is that of the one cause for which all commands refuse a model, if it is that.
    """
    unfit = [model for model in answer.models if not model.fits]
    if not unfit:
        return None
    lines = [
        f"{model.model}: {line}"
        for model in unfit
        for line in (
            *model.obstacles,
            *(
                f"{each.operator.domain} {each.operator.name} ({each.operator.opset}) is missing: {each.detail}"
                for each in model.missing
            ),
        )
    ]
    codes = {model.code for model in unfit}
    failure = OperatorsError(
        (codes.pop() if len(codes) == 1 else "") or "model-does-not-fit",
        f"{len(unfit)} of {len(answer.models)} models would not run on it",
        where=f"{answer.runtime}, ONNX Runtime {answer.ort_version}",
        why=first_lines(lines, MOST_LINES),
        hint=_hint(answer, unfit),
    )
    failure.exit_code = ExitCode(max(model.exit_code or ExitCode.OPERATORS for model in unfit))
    return failure


def _hint(answer: CompatibilityAnswer, unfit: list[ModelAnswer]) -> str:
    if all(model.remedies for model in unfit):
        return f"without a new runtime: {unfit[0].remedies[0]}"
    change = answer.change or answer.replacement
    if change:
        return "ship a runtime with the smallest change named above"
    return "change the model as it says" if any(model.code for model in unfit) else "ship another model"


def _check_ort(trials: Trials, path: Path) -> Checked:
    uses = read_uses(path)
    answer, in_place = replace(trials.judge(uses, converted=False), model=str(path)), True
    if answer.fits:
        try:
            refusal, in_place = trials.loading(path)
        except ToolError as error:
            unknown = f"whether ONNX Runtime {trials.runtime.ort_version} loads it: {error.what}"
            answer = replace(answer, unknowns=(*answer.unknowns, unknown))
        else:
            obstacles = (f"the full runtime does not load it: {refusal.splitlines()[0]}",) if refusal else ()
            answer = replace(answer, fits=not refusal, obstacles=obstacles)
    return path, answer if in_place else replace(answer, conditions=(COPIED,)), uses


def _check_onnx(trials: Trials, path: Path, console: Console) -> Checked:
    with console.step(f"convert {path.name}"):
        try:
            prepared = trials.prepare(path)
            converted = trials.convert(prepared, trials.usual)
        except (ConvertError, ModelError, OperatorsError) as refusal:
            why = "; ".join(filter(None, (refusal.what, *refusal.why.strip().splitlines()[:1], refusal.hint)))
            answer = ModelAnswer(
                model=str(path),
                fits=False,
                obstacles=(why,),
                remedies=tuple(remedies_for_refused(trials, path, refusal)),
                code=refusal.code,
                exit_code=int(refusal.exit_code),
            )
            return path, answer, None
        uses = trials.uses(converted)
        answer = trials.judge(uses)
    tried: tuple[str, ...] = ()
    if not answer.fits:
        with console.step(f"try other conversions of {path.name}"):
            tried = tuple(remedies(trials, prepared, answer))
    answer = replace(
        answer,
        model=str(path),
        conversion=conversion_words(trials.usual),
        conditions=() if converted.reads_in_place else (COPIED,),
        remedies=tried,
    )
    return path, answer, uses


COPIED: Final = (
    f"load it without {IN_PLACE[0]}, as its session.json does: sparse or misaligned weights cannot stay in place"
)


def _answer(trials: Trials, checked: Sequence[Checked]) -> CompatibilityAnswer:
    runtime = trials.runtime
    change = smallest_change(runtime, [(uses, answer) for _, answer, uses in checked if uses])
    appended, replacement = written(runtime, change)
    unfit = [path for path, answer, _ in checked if answer.conversion and not answer.fits]
    return CompatibilityAnswer(
        runtime=runtime.label,
        ort_version=runtime.ort_version,
        targets=runtime.targets,
        fits=all(answer.fits for _, answer, _ in checked),
        models=tuple(answer for _, answer, _ in checked),
        change=appended,
        replacement=replacement,
        buildspec="\n".join(_buildspec_lines(path, trials.usual) for path in unfit) if change else "",
    )


def _buildspec_lines(path: Path, conversion: Conversion) -> str:
    lines = ["[[models]]", f'name = "{name_from(path) or "model"}"', f"path = {toml_string(str(path))}"]
    usual = asdict(DEFAULT_CONVERSION)
    lines += [f'{key} = "{value}"' for key, value in asdict(conversion).items() if value != usual[key]]
    return "".join(f"{line}\n" for line in lines)
