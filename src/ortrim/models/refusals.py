"""Why ONNX Runtime does not take a model: what its own words mean, and what to do about them.

All that load or run a model ask here, so that a cause has one code, one hint and one exit code wherever it is met.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import ConvertError, Diagnostic, ModelError
from ortrim.models.models import PreparedModel


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One reason for which ONNX Runtime refuses models, told by its `words`; `kind` decides the exit code.

    `converted` ones are met by converting alone, and not when the model is loaded as it is.
    """

    code: str
    words: re.Pattern[str]
    what: str
    hint: str
    kind: type[Diagnostic] = ModelError
    converted: bool = False


LOCALE_HINT: Final = (
    "export the model with locale = 'C', by which ASCII letters alone change their case, or install the locale here and"
    " on every device (LOCPATH names a folder with locales)"
)
BELOW_8_BITS: Final = "quantize the weights to 8 bits (step quantize), or set onnxruntime.version to 1.27"
WITHOUT_OPTIONAL: Final = (
    "export it without the operator Optional: with opset 18 or newer OptionalGetElement and OptionalHasElement take a"
    " tensor as it is"
)
CAUSES: Final = (
    Cause(
        code="locale-missing",
        words=re.compile(r"Failed to construct locale|_byname<\w+>::\w+ failed to construct for"),
        what="a StringNormalizer needs a locale that is not there",
        hint=LOCALE_HINT,
    ),
    Cause(
        code="upsample-shrinks",
        words=re.compile("Scale value should be greater than or equal to 1"),
        what="Upsample has a scale below 1, which ONNX Runtime does not take",
        hint="export with opset 10 or newer, where Resize takes its place:"
        " onnx.version_converter.convert_version(model, 17)",
    ),
    Cause(
        code="quantize-16-bits",
        words=re.compile(r"tensor\(u?int16\)' of input parameter \(.*\) of operator \((?:Dequ|Qu)antizeLinear\)"),
        what="QuantizeLinear and DequantizeLinear take 16-bit integers from opset 21 on",
        hint="export with opset 21 or newer: onnx.version_converter.convert_version(model, 21);"
        " or give these nodes the domain com.microsoft",
    ),
    Cause(
        code="sparse-operand",
        words=re.compile(r"of operator \(SparseToDenseMatMul\) in node \(.*\) is invalid"),
        what="SparseToDenseMatMul takes no sparse weights, which ONNX Runtime makes dense when it loads a model",
        hint="use MatMul in its place, with the same weights",
    ),
    Cause(
        code="weights-exceed-memory",
        words=re.compile(r"Load model from .*failed:.*(?:bad_alloc|Integer overflow)"),
        what="there is not enough memory for the model's weights",
        hint="ONNX Runtime makes sparse weights dense when it loads a model: export them as a smaller dense tensor,"
        " or look them up by Gather; without sparse weights, use a machine with more memory",
    ),
    Cause(
        code="values-exceed-memory",
        words=re.compile(
            r"Failed to allocate memory for requested buffer|Exception during initialization: std::bad_alloc"
            r"|MemoryError|SafeIntOnOverflow\(\) Integer overflow|^(?:\w+ '[^']*'|\w+): Integer overflow"
        ),
        what="there is not enough memory for a value that the model computes",
        hint="write cases with smaller sizes (cases = [{ dimensions = ... }]); if constants of the model decide"
        " the size, export it with smaller ones; otherwise use a machine with more memory",
    ),
    Cause(
        code="external-shape",
        words=re.compile("Cannot parse data from external tensors"),
        what="a constant that decides a shape lies in another file, where ONNX Runtime does not look for it",
        hint="save the model as one file: onnx.save(onnx.load(path), path)",
    ),
    Cause(
        code="weights-below-8-bits",
        words=re.compile("Unsupported tensor data type"),
        what="ORT format holds no weights of 4 or 2 bits",
        hint=BELOW_8_BITS,
        converted=True,
    ),
    Cause(
        code="optional-values",
        words=re.compile(r"We do not support type \[9\] for now"),
        what="ORT format holds no optional values",
        hint=WITHOUT_OPTIONAL,
        converted=True,
    ),
    Cause(
        code="fused-4-bit-weights",
        words=re.compile("SystemError : 2"),
        what="this version of ONNX Runtime cannot save the 4-bit weights that it fuses itself",
        hint="set level = 'basic'",
        kind=ConvertError,
        converted=True,
    ),
)
"""The words are those of `string_normalizer.cc` and, in a library without exceptions, of libc++; of `upsamplebase.h`,
`graph.cc`, and ONNX's `tensor_proto_util.cc`; type 9 is `optional_type`, for which `graph_flatbuffers_utils.cc` has no
place.

Weights below 8 bits: the wheels of 1.24.4 to 1.27.0 load them from ORT format, those of 1.28.0 to 1.32.0 do not. Fused
MatMulNBits: 1.20 and 1.21.
"""
LOAD_HINT: Final = (
    "check it with onnx.checker.check_model, and export it again; if the checker accepts it, report it to ONNX Runtime"
)
CRASH_HINT: Final = (
    "export with another opset, or without the operators that run then; report it to ONNX Runtime with the model"
)


def cause_of(words: str, *, converted: bool = False) -> Cause | None:
    """Return the cause that ONNX Runtime's words tell of a model, as it is or `converted`; None when none is known."""
    return next((each for each in CAUSES if each.words.search(words) and (converted or not each.converted)), None)


def known_refusal(words: str, model: PreparedModel, *, converted: bool = False) -> Diagnostic | None:
    """Return the diagnostic of a refusal whose cause is known."""
    cause = cause_of(words, converted=converted)
    if cause is None:
        return None
    why = plain_words(words, model.path, model.name)
    return cause.kind(cause.code, cause.what, where=where_of(model), why=why, hint=cause.hint)


def refusal(words: str, model: PreparedModel, ort_version: str) -> Diagnostic:
    """Return the diagnostic of a model that does not load with all optimizations off: `does-not-load`, or its cause."""
    known = known_refusal(words, model)
    if known is not None:
        return known
    what, why = f"ONNX Runtime {ort_version} does not load the model", plain_words(words, model.path, model.name)
    return ModelError("does-not-load", what, where=where_of(model), why=why, hint=LOAD_HINT)


def crash(ending: str, where: str, ort_version: str, *, why: str, hint: str = CRASH_HINT) -> ModelError:
    """Return the diagnostic of the full runtime's end: `ending` is "crashed (SIGSEGV)"."""
    what = f"ONNX Runtime {ort_version} {ending} while it worked on the model"
    return ModelError("crashes-runtime", what, where=where, why=why, hint=hint)


def where_of(model: PreparedModel) -> str:
    """Name a model in a diagnostic."""
    return f"model '{model.name}'"


LONGEST_WORDS: Final = 300
NOISE: Final = (
    (re.compile(r"(?:^\w+: )?\[ONNXRuntimeError\] : \d+ : \w+ : "), ""),
    (
        re.compile(r"Non-zero status code returned while running (\w+) node\. Name:'([^']*)' Status Message: "),
        r"\1 '\2': ",
    ),
    (re.compile(r"(\w) '': "), r"\1: "),
    (
        re.compile(
            r"(?:/onnxruntime_src/|[A-Z]:)?[\w/\\.]*\w\.(?:cc|h):\d+ "
            r"(?:[^()]*\((?:[^()]|\([^()]*\))*\)(?:::<lambda\(\)>)?(?: const)?(?= )|\w+(?:::\w+)+)?"
        ),
        "",
    ),
)
"""What says where ONNX Runtime's own code is, and not what is wrong with the model."""


def plain_words(words: str, path: Path, name: str = "") -> str:
    """Return ONNX Runtime's words without codes, places in its sources, and this machine's folder of the model.

    The model is called by `name`, or else as its file is. The code stays where there is nothing else: 1.23.2 refuses
    weights of 4-bit floats without another word.
    """
    plain = words.replace(str(path), name or path.name).replace(f"{path.parent}{os.sep}", "")
    for pattern, instead in NOISE:
        plain = pattern.sub(instead, plain).strip() or plain
    return " ".join(plain.split())[:LONGEST_WORDS]
