"""Why ONNX Runtime does not take a model: what its own words mean, and what to do about them.

All that load or run a model ask here, so that a cause has one code, one hint and one exit code wherever it is met.
"""

import os
import re
from pathlib import Path
from typing import Final

from ortrim.base.files import shipped_words
from ortrim.base.tools import Cause
from ortrim.errors import ConvertError, Diagnostic, ModelError
from ortrim.models.models import PreparedModel

_WORDS: Final = shipped_words("rules/refusals")
_CONVERTING: Final = frozenset({"fused-4-bit-weights"})
"""Causes that are a fault of converting, not of the model."""
CONVERTED: Final = frozenset(code for code, each in _WORDS.items() if each.pop("converted", False))
"""Causes that are met by converting alone, and not when the model is loaded as it is."""
CAUSES: Final = tuple(
    Cause(code=code, kind=ConvertError if code in _CONVERTING else ModelError, **each) for code, each in _WORDS.items()
)
LOCALE_HINT: Final[str] = _WORDS["locale-missing"]["hint"]
BELOW_8_BITS: Final[str] = _WORDS["weights-below-8-bits"]["hint"]
WITHOUT_OPTIONAL: Final[str] = _WORDS["optional-values"]["hint"]
LOAD_HINT: Final = (
    "check it with onnx.checker.check_model, and export it again; if the checker accepts it, report it to ONNX Runtime"
)
CRASH_HINT: Final = (
    "export with another opset, or without the operators that run then; report it to ONNX Runtime with the model"
)


def cause_of(words: str, *, converted: bool = False) -> Cause | None:
    """Return the cause that ONNX Runtime's words tell of a model, as it is or `converted`; None when none is known."""
    possible = (each for each in CAUSES if converted or each.code not in CONVERTED)
    return next((each for each in possible if re.search(each.words, words)), None)


def known_refusal(words: str, model: PreparedModel, *, converted: bool = False) -> Diagnostic | None:
    """Return the diagnostic of a refusal whose cause is known."""
    cause = cause_of(words, converted=converted)
    if cause is None:
        return None
    return cause.diagnostic(where_of(model), plain_words(words, model.path, model.name), ModelError)


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
