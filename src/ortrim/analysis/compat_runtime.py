"""A runtime that users have: what is compiled into it, as far as that decides which models it runs. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from ortrim.analysis.inspect import read_config
from ortrim.base.files import storage_errors
from ortrim.base.json import read_json
from ortrim.buildspec.buildspec import RuntimeSpec
from ortrim.buildspec.targets import TARGETS, Architecture
from ortrim.compiling.dead_kernels import AVX512_NCHWC, FLOAT8, FLOAT16, SPARSE
from ortrim.compiling.plan import Manifest, PackagedLibrary, PackageManifest, PlannedModel
from ortrim.errors import PackageError, bad_option
from ortrim.models.convert import Conversion
from ortrim.models.operators import OperatorId, RequiredOperators
from ortrim.package.aar_contents import AarManifest, read_aar
from ortrim.package.manifest import LARGEST_BYTES, MANIFEST, read_manifest
from ortrim.pins.runtime import limits_of, supported_versions
from ortrim.platforms import platform_of

KernelVersions = Mapping[tuple[str, str], tuple[tuple[int, int], ...]]
"""First and last opset of each kernel, by domain and name of its operator; a last of `ANY_LATER` is open."""
ANY_LATER: Final = 2**31 - 1
FLOAT4: Final = "float4"
KINDS_LEFT_OUT: Final = (FLOAT4, FLOAT8, SPARSE)
"""What `--disable_types` compiles out that a model may have as values, in upstream's words; `float4` from 1.28 on."""
WITHOUT_FLOAT16: Final = "ORTRIM_WITHOUT_FLOAT16=ON"
"""By which our own hooks leave out 16-bit floats."""
FORMAT_VERSIONS: Final = ("5", "6")
"""Versions of ORT format that a minimal build reads: `IsOrtModelVersionSupported` of `ort_format_version.h`, the same
since 1.16."""

_ALWAYS: Final[Mapping[str, Mapping[str, tuple[int, ...]]]] = {
    "ai.onnx": {
        "DequantizeLinear": (10, 13, 19, 21), "Gather": (1, 11, 13), "Identity": (1, 13, 14, 16, 19, 21),
        "QuantizeLinear": (10, 13, 19, 21), "Squeeze": (1, 11, 13, 21), "Transpose": (1, 13, 21),
        "Unsqueeze": (1, 11, 13, 21),
    },
    "com.microsoft": {"DequantizeLinear": (1,), "NhwcMaxPool": (1,), "QLinearConv": (1,), "QuantizeLinear": (1,)},
}  # fmt: skip
_RENEWED: Final = (23, 24, 25)
"""Opsets that have a new form of each of these operators of `ai.onnx` that has one in opset 21."""
_NHWC_SINCE: Final = 1, 28
"""The ONNX Runtime in which `NhwcFusedConv` was added."""


def layout_operators(ort_version: str) -> frozenset[OperatorId]:
    """Return what every extended minimal build of a version has.

    Source: upstream's `layout_transformation_potentially_added_ops.h` of 1.21.0, 1.22.0, 1.24.4, 1.28 and 1.30, which
    gets the opsets of an ONNX release when the version takes them.
    """
    limits = limits_of(ort_version)
    renewed = tuple(opset for opset in _RENEWED if limits and opset <= limits.opset)
    always = {
        OperatorId(domain=domain, opset=opset, name=name)
        for domain, names in _ALWAYS.items()
        for name, opsets in names.items()
        for opset in (*opsets, *(renewed if 21 in opsets else ()))
    }
    if tuple(map(int, ort_version.split(".")[:2])) >= _NHWC_SINCE:
        always.add(OperatorId(domain="com.microsoft", opset=1, name="NhwcFusedConv"))
    return frozenset(always)


@dataclass(frozen=True, kw_only=True)
class InstalledRuntime:
    """What is compiled into a runtime.

    `label` names it for the user, `targets` are its targets' identifiers. `operators` is its configuration. `extended`
    says whether it is an extended minimal build, None when that is not known. `without` are the kinds of types that are
    compiled out for every operator: some of `KINDS_LEFT_OUT`, and 16-bit floats. `conversions` are those of the models
    that it was made for, the usual one first. `channel_block` is how many channels lie in a block of models that are
    laid out so, where that is known. `types_for_optimizers` is as in `BuildJob`; a configuration alone does not promise
    them.
    """

    label: str
    ort_version: str
    operators: RequiredOperators
    targets: tuple[str, ...] = ()
    extended: bool | None = None
    without: tuple[str, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    channel_block: int | None = None
    types_for_optimizers: bool = False

    @property
    def present(self) -> frozenset[OperatorId]:
        """The operators that are sure to be there, at the opsets of the configuration."""
        return frozenset(self.operators.operators) | (
            layout_operators(self.ort_version) if self.extended else frozenset()
        )

    def opsets_of(self, operator: OperatorId) -> tuple[int, ...]:
        """Return the opsets at which an operator is there."""
        same = (each for each in self.present if (each.domain, each.name) == (operator.domain, operator.name))
        return tuple(sorted(each.opset for each in same))

    def has(self, operator: OperatorId, kernels: KernelVersions) -> bool:
        """Whether a kernel that serves an operator is there.

        A build keeps the kernels whose range holds an opset of its configuration. Such a kernel also serves other
        opsets in its range; of an open range, the first alone (`VerifyVersion` in upstream's `kernel_registry.cc`).
        """
        if self.operators.everything or operator in self.present:
            return True
        kept = self.opsets_of(operator)
        return any(
            (operator.opset == first or (last != ANY_LATER and first <= operator.opset <= last))
            and any(first <= opset <= last for opset in kept)
            for first, last in kernels.get((operator.domain, operator.name), ())
        )


Slot = tuple[Literal["input", "output"], int]
Key = tuple[str, str]
"""Domain and name of an operator."""

INPUT: Final[Slot] = ("input", 0)
SECOND: Final[Slot] = ("input", 1)
OUTPUT: Final[Slot] = ("output", 0)

_BY_FIRST_INPUT: Final = (
    "Abs", "Add", "ArgMax", "ArgMin", "AveragePool", "BatchNormalization", "BitShift", "Ceil", "Clip", "Concat",
    "Conv", "CumSum", "DequantizeLinear", "Div", "Equal", "Exp", "Expand", "Floor", "Gemm", "Greater", "IsNaN",
    "Less", "Log", "LogSoftmax", "LpNormalization", "MatMul", "Max", "MaxPool", "Mean", "Min", "Mul", "Neg",
    "NonZero", "Pad", "QLinearConv", "QLinearMatMul", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu",
    "Resize", "ReverseSequence", "RoiAlign", "Round", "Scatter", "ScatterElements", "ScatterND", "Shrink",
    "Sigmoid", "Sign", "Sin", "Softmax", "Split", "Sqrt", "Sub", "Sum", "Tanh", "TopK", "Transpose", "Unique",
)  # fmt: skip
_BY_OUTPUT: Final = (
    "ConstantOfShape", "DynamicQuantizeLinear", "Multinomial", "QuantizeLinear", "RandomNormal", "RandomNormalLike",
    "RandomUniform", "RandomUniformLike",
)  # fmt: skip
SLOTS: Final[dict[Key, tuple[Slot, ...]]] = {
    **{("ai.onnx", name): (INPUT,) for name in _BY_FIRST_INPUT},
    **{("ai.onnx", name): (OUTPUT,) for name in _BY_OUTPUT},
    **{("com.microsoft", name): (INPUT,) for name in ("QLinearAdd", "QLinearConv", "QLinearMul")},
    ("ai.onnx", "Cast"): (INPUT, OUTPUT),
    ("ai.onnx", "Gather"): (SECOND,),
    ("ai.onnx", "Pow"): (INPUT, SECOND),
    ("ai.onnx", "Slice"): (INPUT, SECOND),
    ("ai.onnx", "Where"): (SECOND,),
}
"""The inputs and outputs whose types are limited, by operator. Configurations list a few more, to no effect."""

ONE_HOT: Final[Key] = ("ai.onnx", "OneHot")
ONE_HOT_ORDER: Final = (0, 2, 1)
"""The inputs whose types make an entry of `custom`, in its order: indices, values, depth."""

_INTEGERS: Final = frozenset({"int32_t", "int64_t"})
_SHAPING: Final = (
    "Add", "Concat", "Div", "Equal", "Greater", "Less", "Mul", "Neg", "Range", "Slice", "Split", "Sub",
)  # fmt: skip
_BYTE_TYPES: Final = frozenset({"int8_t", "uint8_t"})
_CAST: Final = frozenset({"bool", "int32_t", "int64_t"})


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """Types that are compiled in whatever the configuration says, from an opset on; None for all types.

    `always` are those of them that a build without types for optimizers has, too.
    """

    types: frozenset[str] | None
    always: frozenset[str] | None = frozenset()
    since: int = 1


_KEPT: Final[dict[tuple[str, Slot], _Kept]] = {
    **{(name, INPUT): _Kept(types=_INTEGERS) for name in _SHAPING},
    **{(name, SECOND): _Kept(types=_INTEGERS) for name in ("Gather", "Slice")},
    **{("Cast", slot): _Kept(types=_CAST) for slot in (INPUT, OUTPUT)},
    **{(name, INPUT): _Kept(types=_INTEGERS, since=12) for name in ("Max", "Min")},
    ("ConstantOfShape", OUTPUT): _Kept(types=frozenset({"int64_t"})),
    ("DequantizeLinear", INPUT): _Kept(types=_BYTE_TYPES | {"int32_t"}, always=_BYTE_TYPES),
    ("Pad", INPUT): _Kept(types=_INTEGERS, since=11),
    ("Transpose", INPUT): _Kept(types=None, always=None, since=21),
}
"""Of `ai.onnx`; no other domain has such."""

_ALL_IN_EXTENDED: Final[frozenset[Key]] = frozenset({
    ("ai.onnx", "DequantizeLinear"), ("ai.onnx", "QuantizeLinear"), ("ai.onnx", "Transpose"),
    ("com.microsoft", "QLinearConv"),
})  # fmt: skip

_BYTES: Final = {
    "bool": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "MLFloat16": 2, "BFloat16": 2, "float": 4,
    "int32_t": 4, "uint32_t": 4, "double": 8, "int64_t": 8, "uint64_t": 8,
}  # fmt: skip
BY_SIZE: Final[Key] = ("ai.onnx", "Concat")
"""Copies elements of any type that is as large as one that is compiled in."""


def allowed_types(runtime: InstalledRuntime, operator: OperatorId, slot: Slot) -> frozenset[str] | None:
    """Return the types that a runtime takes at an input or output of an operator; None for all.

    Extended minimal builds keep what turning layouts around may need. OneHot has a rule of its own: `one_hot_fits`.
    """
    key = (operator.domain, operator.name)
    listed = _listed(runtime.operators, key, slot)
    if slot not in SLOTS.get(key, ()) or listed is None or (runtime.extended and key in _ALL_IN_EXTENDED):
        return None
    kept = _KEPT.get((operator.name, slot)) if operator.domain == "ai.onnx" else None
    if kept is None or operator.opset < kept.since:
        return _as_used(key, listed)
    types = kept.types if runtime.types_for_optimizers else kept.always
    return None if types is None else _as_used(key, listed | types)


def one_hot_triple(types: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types of a OneHot's inputs as an entry of `custom` has them; empty when the model does not say."""
    triple = tuple(types[index] for index in ONE_HOT_ORDER if index < len(types) and types[index])
    return triple if len(triple) == len(ONE_HOT_ORDER) else ()


def one_hot_fits(required: RequiredOperators, types: tuple[str, ...]) -> bool:
    """Whether a build takes a OneHot whose inputs have these types."""
    triple = one_hot_triple(types)
    if required.globally_allowed_types:
        return set(triple) <= set(required.globally_allowed_types)
    listed = required.types_of(*ONE_HOT)
    return listed.unrestricted or not triple or triple in listed.custom


def _listed(required: RequiredOperators, key: Key, slot: Slot) -> frozenset[str] | None:
    if required.globally_allowed_types:
        return frozenset(required.globally_allowed_types)
    types = required.types_of(*key)
    direction, index = slot
    listed = dict(types.inputs if direction == "input" else types.outputs).get(index)
    return None if listed is None else frozenset(listed)


def _as_used(key: Key, types: frozenset[str]) -> frozenset[str]:
    if key != BY_SIZE:
        return types
    sizes = {_BYTES[name] for name in types if name in _BYTES}
    return types | {name for name, size in _BYTES.items() if size in sizes}


ZIP: Final = b"PK\x03\x04"
GZIP: Final = b"\x1f\x8b"
ELF: Final = b"\x7fELF"
ORT: Final = b"ORTM"
AAR_SCHEMA: Final = "ortrim-aar/1"
TAKEN: Final = f"give a package (.tar.gz, .aar or its folder), a {MANIFEST}, or an operator configuration (.config)"


def read_runtime(path: Path, ort_version: str | None = None) -> InstalledRuntime:
    """Return what is compiled into a runtime; `path` is a package, its folder or manifest, or a configuration.

    A configuration says nothing but the operators: `ort_version` is then the version, or the one that buildspecs have
    by default.
    """
    if ort_version is not None and ort_version not in supported_versions():
        raise bad_option("ort-version", ort_version, f"choose one of {', '.join(supported_versions())}")
    if not path.exists():
        raise PackageError("package-missing", "there is no such package", where=str(path), hint=TAKEN)
    head = b""
    if not path.is_dir():
        with storage_errors(path), path.open("rb") as file:
            head = file.read(1024)
    if path.is_dir() or path.name == MANIFEST:
        runtime = _from_manifest(path)
    elif head.startswith(GZIP):
        runtime = _of_package(read_manifest(path))
    elif head.startswith(ZIP):
        manifest = read_aar(path).manifest
        if manifest is None:
            raise _unknown(path, "was not made by ortrim, and has no list of the operators that are compiled into it")
        runtime = _of_all(manifest, manifest.abis)
    elif head.startswith(ELF) or head[4:8] == ORT or b"\0" in head:
        raise _unknown(path, "is no package, and does not say which operators are compiled into it")
    else:
        operators = read_config(path)
        return InstalledRuntime(label=path.name, ort_version=ort_version or RuntimeSpec().version, operators=operators)
    if ort_version not in {None, runtime.ort_version}:
        raise bad_option("ort-version", str(ort_version), f"the package is of {runtime.ort_version}")
    return runtime


def _from_manifest(path: Path) -> InstalledRuntime:
    file = path / MANIFEST if path.is_dir() else path
    if _schema(file) != AAR_SCHEMA:
        return _of_package(read_manifest(path))
    damaged = PackageError("manifest-damaged", f"{MANIFEST} is not a manifest", where=str(file))
    manifest = read_json(AarManifest, file.read_bytes(), damaged)
    return _of_all(manifest, manifest.abis)


def _schema(path: Path) -> Any:
    """Return what a manifest says of its own kind; None when it is not there, or none."""
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(LARGEST_BYTES + 1))
    except (OSError, ValueError, RecursionError):
        return None
    return document.get("schema") if isinstance(document, dict) else None


def _unknown(path: Path, what: str) -> PackageError:
    return PackageError("runtime-unknown", what, where=str(path), hint=TAKEN)


def _of_package(manifest: Manifest) -> InstalledRuntime:
    target = TARGETS.get(manifest.target)
    block = 16 if any(AVX512_NCHWC in argument for argument in manifest.arguments) else 8
    laid_out = any(model.layout == "nchwc8" for model in manifest.models)  # elsewhere kernels come with such models
    has_blocks = target and (target.architecture is Architecture.X64 or laid_out)
    return replace(_of_all(manifest, (manifest,)), channel_block=block if has_blocks else None)


def _of_all(manifest: PackageManifest, libraries: tuple[PackagedLibrary, ...]) -> InstalledRuntime:
    """Return what every library of a package has: an app's users have one of them."""
    found = [(TARGETS.get(each.target), each.arguments) for each in libraries]
    without = (_without(words, platform_of(target).TYPES_LEFT_OUT if target else ()) for target, words in found)
    return InstalledRuntime(
        label=manifest.name,
        ort_version=manifest.ort_version,
        operators=manifest.operators,
        targets=tuple(each.target for each in libraries),
        extended=all(_follows(words, "--minimal_build", "extended") for _, words in found),
        without=tuple(sorted(set().union(*without))),
        types_for_optimizers=all(each.types_for_optimizers for each in libraries),
        conversions=_conversions(manifest.models),
    )


def _follows(arguments: tuple[str, ...], option: str, word: str) -> bool:
    """Whether a word is among those that follow an option, up to the next option."""
    if option not in arguments:
        return False
    for each in arguments[arguments.index(option) + 1 :]:
        if each.startswith("-"):
            return False
        if each == word:
            return True
    return False


def _without(arguments: tuple[str, ...], always: tuple[str, ...]) -> tuple[str, ...]:
    """Return the kinds of types that are compiled out, those that the platform `always` leaves out among them."""
    disabled = {kind for kind in KINDS_LEFT_OUT if _follows(arguments, "--disable_types", kind)}
    floats = {FLOAT16} if WITHOUT_FLOAT16 in arguments else frozenset[str]()
    return tuple(sorted(disabled.union(always, floats)))


def _conversions(models: tuple[PlannedModel, ...]) -> tuple[Conversion, ...]:
    words: Any = dict.fromkeys((model.style, model.level, model.layout or "plain") for model in models)
    return tuple(Conversion(style=style, level=level, layout=layout) for style, level, layout in words)
