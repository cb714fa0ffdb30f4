"""Convert: `PreparedModel` -> `OrtModel`, by the full ONNX Runtime of exactly the version that is built."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn

from ortrim.core import models
from ortrim.core.model_spec import Layout
from ortrim.core.models import OrtModel, PreparedModel
from ortrim.core.operator_config import parse_config, render_config
from ortrim.core.serialization import to_canonical_json
from ortrim.errors import ConvertError
from ortrim.models.alignment import misaligned_tensors
from ortrim.models.converting_processor import converter_for
from ortrim.models.copies import keep, read_facts
from ortrim.models.kernels import check_kernels, kernel_diagnostic
from ortrim.models.ort_canonical import canonical
from ortrim.models.ort_reading import Damaged
from ortrim.models.scripts import run_script
from ortrim.storage.files import require_space, sha256_of, storage_errors
from ortrim.storage.records import cached_folder
from ortrim.tools.full_runtime import FullRuntime
from ortrim.tools.scripts import SCRIPTS

ORT_FILE: Final = "model.ort"
SCRIPT: Final = "convert.py"
HINTS: Final = {
    "Failed to construct locale": "a StringNormalizer of the model needs a locale that this system lacks, and so would "
    "every device: export it with locale = 'C', or install the locale",
    "SystemError : 2": "this version of ONNX Runtime cannot save the 4-bit weights that it fuses itself; "
    "set level = 'basic'",
}
"""What to do, by ONNX Runtime's words: `string_normalizer.cc`, and fused MatMulNBits (1.20 and 1.21)."""
OTHER_HINT: Final = "try level = 'basic'; if onnx.checker accepts the model, report it to ONNX Runtime"
CORE: Final = Path(models.__file__).parent


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """How a model is converted; see `ModelSpec` for the words."""

    style: Literal["fixed", "runtime"] = "fixed"
    level: Literal["disable", "basic", "extended", "all"] = "extended"
    layout: Layout | None = None


@dataclass(frozen=True, kw_only=True)
class _Identity:
    """What a conversion depends on."""

    onnx_sha256: str
    ort_version: str
    conversion: Conversion
    code_sha256: str


@dataclass(frozen=True, kw_only=True)
class _Converted:
    """What is kept beside a converted model."""

    sha256: str
    size_bytes: int
    config: str
    aligned: bool


def convert(model: PreparedModel, conversion: Conversion, *, runtime: FullRuntime, root: Path) -> OrtModel:
    """Return the model in ORT format with its required operators.

    Folders below `root` are named by what the conversion depends on; one that is there is not converted again.
    Nothing of the converting processor is baked into the model, unless the layout asks for it: then it is the same kind
    of processor whatever the machine, or the machine is refused.
    Raises `ConvertError` (`conversion-failed`, `converter-crashed`, `wrong-version`, `layout-not-here`),
    `OperatorsError` (`no-kernel`), `ToolError` or `StorageError`; nothing is left behind then.
    """
    identity = _Identity(
        onnx_sha256=model.facts.sha256,
        ort_version=runtime.version,
        conversion=conversion,
        code_sha256=_code_digest(),
    )
    folder = root / hashlib.sha256(to_canonical_json(identity).encode()).hexdigest()
    cached_folder(folder, lambda temporary: _convert(model, conversion, runtime, temporary))
    converted = read_facts(folder, _Converted)
    return OrtModel(
        name=model.name,
        path=folder / ORT_FILE,
        sha256=converted.sha256,
        size_bytes=converted.size_bytes,
        ort_version=runtime.version,
        style=conversion.style,
        level=conversion.level,
        config=converted.config,
        aligned=converted.aligned,
    )


def _code_digest() -> str:
    """Return one digest of all the code of ours that the result can depend on, rather than list it in vain."""
    folders = (SCRIPTS, Path(__file__).parent, CORE)
    files = sorted(file for folder in folders for file in folder.glob("*.py"))
    return hashlib.sha256("".join(f"{file.name} {sha256_of(file)}\n" for file in files).encode()).hexdigest()


def _convert(model: PreparedModel, conversion: Conversion, runtime: FullRuntime, folder: Path) -> None:
    output, config = folder / ORT_FILE, folder / "converter.config"
    files = {"model": str(model.path), "output": str(output), "config": str(config)}
    request = {"version": runtime.version, **files, **asdict(conversion)}
    copies = 2 if conversion.style == "runtime" else 1
    require_space(folder.parent, copies * model.facts.size_bytes, f"converting '{model.name}'")
    converter = converter_for(conversion.layout, runtime, model.name)
    answer = run_script(converter, SCRIPT, request, folder=folder, where=model.name)
    if "failure" in answer:
        _fail(str(answer["failure"]), str(answer.get("words", "")), model, runtime, folder)
    _write_canonical(output, model.name)
    check_kernels(output, original=model, runtime=runtime, folder=folder)
    text = render_config(parse_config(config.read_text(), f"required operators of {model.name}"))
    config.unlink()
    size, aligned = output.stat().st_size, not misaligned_tensors(output)
    keep(_Converted(sha256=sha256_of(output), size_bytes=size, config=text, aligned=aligned), folder)


def _write_canonical(path: Path, where: str) -> None:
    """Make the bytes depend on nothing but the model."""
    try:
        content = canonical(path.read_bytes())
    except Damaged as error:
        what = "the converter wrote a file that ortrim cannot read"
        raise ConvertError("conversion-failed", what, where=where, hint="report it to ortrim with the model") from error
    with storage_errors(path):
        path.write_bytes(content)


def _fail(reference: str, words: str, model: PreparedModel, runtime: FullRuntime, folder: Path) -> NoReturn:
    """Raise the diagnostic that fits the converter's words."""
    words = words.replace(str(model.path), model.name)
    missing = kernel_diagnostic(words, original=model, runtime=runtime, folder=folder)
    if missing is not None:
        raise missing
    if reference == "wrong-version":
        what = f"the converter is not ONNX Runtime {runtime.version}"
        raise ConvertError(reference, what, where=model.name, why=words, hint="run: invoke doctor")
    what = f"ONNX Runtime {runtime.version} could not convert the model"
    hint = next((hint for known, hint in HINTS.items() if known in words), OTHER_HINT)
    raise ConvertError(reference, what, where=model.name, why=words, hint=hint)
