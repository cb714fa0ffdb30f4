"""Convert: `PreparedModel` -> `OrtModel`, by the full ONNX Runtime of exactly the version that is built."""

import hashlib
import platform
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal, NoReturn

from ortrim.base.cache import cached_folder
from ortrim.base.files import code_digest, require_space, sha256_of, storage_errors
from ortrim.base.json import to_canonical_json
from ortrim.base.scripts import SCRIPTS
from ortrim.base.tools import X64_USER, require
from ortrim.buildspec.buildspec import BLOCKS, Layout
from ortrim.errors import ConvertError
from ortrim.models.full_runtime import FullRuntime, run_script
from ortrim.models.kernels import check_kernels, check_minimal_build, kernel_diagnostic, load_refusal, loads_in_place
from ortrim.models.models import OrtModel, PreparedModel
from ortrim.models.nchwc_graph import keep_blocks
from ortrim.models.operators import parse_config, render_config
from ortrim.models.ort_format import Damaged, canonical, misaligned_tensors
from ortrim.models.prepare import keep, read_facts
from ortrim.models.recurrent_graph import shorten_recurrent
from ortrim.models.refusals import known_refusal, plain_words, refusal
from ortrim.models.two_axes import write_with_two_axes

CPU: Final = "Haswell-noTSX,-x2apic,-tsc-deadline,-invpcid,-pcid"
"""AVX2 without AVX-512; qemu warns of the features taken away, which it does not emulate."""
HOST: Final = ("Linux", "x86_64")
CPUINFO: Final = Path("/proc/cpuinfo")


def converter_for(layout: Layout, runtime: FullRuntime, where: str) -> FullRuntime:
    """Return the same runtime on the processor that makes a layout in NCHWc blocks; other layouts do not depend on it.

    Blocks of 8 come of an emulated processor with AVX2 and without AVX-512; blocks of 16 of this one, because qemu has
    no AVX-512. Raises `ConvertError` (`layout-not-here`), and `ToolError` without qemu.
    """
    if layout not in BLOCKS:
        return runtime
    if (here := (platform.system(), platform.machine())) != HOST:
        what = "a model in NCHWc layout can be converted only on Linux on x64"
        why = f"this is {' on '.join(here)}, whose wheel of ONNX Runtime does not have this layout"
        hint = "build there, or leave 'layout' out"
        raise ConvertError("layout-not-here", what, where=where, why=why, hint=hint)
    if layout == "nchwc8":
        return replace(runtime, words=(str(require(X64_USER).path), "-cpu", CPU, *runtime.words))
    with storage_errors(CPUINFO):
        features = CPUINFO.read_text(encoding="utf-8", errors="replace").split()
    if "avx512f" not in features:
        what = "a model with NCHWc layout, block size 16 (layout = 'nchwc16') can be converted only with AVX-512"
        why = "this machine's processor does not have it, and there is no emulator"
        hint = "convert on a machine that has it, or use layout = 'nchwc8'"
        raise ConvertError("layout-not-here", what, where=where, why=why, hint=hint)
    return runtime


ORT_FILE: Final = "model.ort"
OTHER_HINT: Final = "set level = 'basic' or 'disable'; the model itself loads with all optimizations off"


@dataclass(frozen=True, kw_only=True)
class Conversion:
    """How a model is converted; see `ModelSpec` for the words.

    `two_axes` are the convolutions along one axis that are made two-dimensional, by their outputs.
    """

    style: Literal["fixed", "runtime"] = "fixed"
    level: Literal["disable", "basic", "extended", "all"] = "extended"
    layout: Layout = "plain"
    two_axes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Converted:
    """What is kept beside a converted model."""

    sha256: str
    size_bytes: int
    config: str
    reads_in_place: bool


def convert(model: PreparedModel, conversion: Conversion, *, runtime: FullRuntime, root: Path) -> OrtModel:
    """Return the model in ORT format with its required operators.

    Folders below `root` are named by what the conversion depends on; one that is there is not converted again.
    Nothing of the converting processor is baked into the model, unless the layout asks for it: then it is the same kind
    of processor whatever the machine, or the machine is refused.
    """
    # All the code of ours that the result can depend on, rather than a list of it that misses something.
    code = code_digest(file for folder in (SCRIPTS, Path(__file__).parent) for file in folder.glob("*.py"))
    identity = (model.facts.sha256, runtime.version, to_canonical_json(conversion), code)
    folder = root / hashlib.sha256("\n".join(identity).encode()).hexdigest()
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
        reads_in_place=converted.reads_in_place,
        two_axes=conversion.two_axes,
    )


def _convert(model: PreparedModel, conversion: Conversion, runtime: FullRuntime, folder: Path) -> None:
    check_minimal_build(model)
    output, config = folder / ORT_FILE, folder / "converter.config"
    laid_out = conversion.layout in BLOCKS and conversion.style == "fixed"
    # A shortened one, the result, and what is laid out, before and after.
    copies = 2 + (conversion.style == "runtime" or laid_out) + bool(conversion.two_axes)
    require_space(folder.parent, copies * model.facts.size_bytes, f"converting '{model.name}'")

    def run(task: str, source: Path, converter: FullRuntime, result: Path, wanted: Conversion) -> None:
        files = {"model": str(source), "output": str(result), "config": str(config)}
        request = {"do": task, "version": runtime.version, **files, **asdict(wanted)}
        answer = run_script(converter, "models.py", request, folder=folder, where=model.name)
        if "failure" in answer:
            _fail(str(answer["failure"]), str(answer.get("words", "")), model, runtime, folder)

    converter = converter_for(conversion.layout, runtime, model.name)
    with tempfile.TemporaryDirectory(dir=folder) as working:
        source = shorten_recurrent(model.path, Path(working) / "shortened.onnx")
        source = write_with_two_axes(source, Path(working) / "two_axes.onnx", conversion.two_axes, followed=laid_out)
        if laid_out:
            optimized = Path(working) / "optimized.onnx"
            run("optimize", source, converter, optimized, conversion)
            keep_blocks(optimized, BLOCKS[conversion.layout])
            run("convert", optimized, runtime, output, replace(conversion, level="disable", layout="plain"))
        else:
            run("convert", source, converter, output, conversion)
    try:
        content = canonical(output.read_bytes())
    except Damaged as error:
        what, hint = "the converter wrote a file that ortrim cannot read", "report it to ortrim with the model"
        raise ConvertError("conversion-failed", what, where=model.name, hint=hint) from error
    with storage_errors(output):
        output.write_bytes(content)
    in_place = not misaligned_tensors(output) and loads_in_place(output, runtime=runtime, folder=folder)
    if not in_place:  # otherwise it was loaded already
        check_kernels(output, original=model, runtime=runtime, folder=folder)
    text = render_config(parse_config(config.read_text(encoding="utf-8"), f"required operators of {model.name}"))
    config.unlink()
    size = output.stat().st_size
    keep(_Converted(sha256=sha256_of(output), size_bytes=size, config=text, reads_in_place=in_place), folder)


def _fail(code: str, words: str, model: PreparedModel, runtime: FullRuntime, folder: Path) -> NoReturn:
    """Raise the diagnostic that fits the converter's words, or those of loading the model as it is."""
    missing = kernel_diagnostic(words, original=model, runtime=runtime, folder=folder)
    if missing is not None:
        raise missing
    if code == "wrong-version":
        what = f"the converter is not ONNX Runtime {runtime.version}"
        raise ConvertError(code, what, where=model.name, why=words, hint="run: invoke doctor")
    if known := known_refusal(words, model, converted=True):
        raise known
    if said := load_refusal(model.path, runtime=runtime, folder=folder, optimized=False):
        raise refusal(said, model, runtime.version)
    what = f"ONNX Runtime {runtime.version} could not convert the model"
    why = plain_words(words, model.path, model.name)
    raise ConvertError(code, what, where=model.name, why=why, hint=OTHER_HINT)
