"""Normalizations and the softmax of bytes: our own code against float64, and upstream's."""

import shutil
from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("qemu-aarch64-static")]

HERE: Final = Path(__file__).parent / "data" / "rows"
CORE: Final = "onnxruntime/onnxruntime"
X64: Final = "x86_64-linux-musl"
RUNS: Final = {X64: (), "aarch64-linux-musl": (EMULATIONS["arm64"].user.name,)}
FLAGS: Final = ("-O2", "-std=c++17", "-fno-exceptions", "-Wall", "-Werror", "-Wno-unused-function")
COMPARED: Final = 600
ROWS: Final = "normalized_rows.h"
LAYER: Final = "layer_norm_rows.h"
SKIP: Final = "skip_layer_norm_rows.h"
SOFTMAX: Final = "byte_softmax.h"
UPSTREAM: Final = {
    "layer_norm_of_upstream.inc": (
        "core/providers/cpu/nn/layer_norm_impl.cc",
        "template <typename T,\n          typename U,\n          typename = ",
        "template <typename U>\nvoid ComputeJob(",
    ),
    "skip_layer_norm_of_upstream.inc": (
        "contrib_ops/cpu/skip_layer_norm.cc",
        "template <typename T, typename = ",
        "void ConvertMLFloat16ToFloatIfNeeded(",
    ),
    "softmax_of_upstream.inc": (
        "contrib_ops/cpu/quantization/qlinear_softmax.cc",
        "template <typename T>\ncommon::Status QlinearSoftmaxCPU(",
        "gsl::span<const QLinearSoftmax::EXP_OUT_DTYPE> QLinearSoftmax::GetLookupTable(",
    ),
}
"""Of each part of a source, its first words and those behind it."""
TABLE: Final = ("void QlinearBuildLookupTableUint32(", "void BuildLookupTableIfFixed(")


def between(text: str, first: str, behind: str) -> str:
    assert (text.count(first), text.count(behind)) == (1, 1)
    return text[text.index(first) : text.index(behind)]


def compared(program: str, target: str, folder: Path, *mode: str) -> tuple[int, str]:
    """Compile a comparison with our headers, but for those that a folder has; return its exit code and what it says."""
    for header in {ROWS, LAYER, SKIP, SOFTMAX} - {path.name for path in folder.iterdir()}:
        shutil.copy(shipped_folder("cmake") / header, folder)
    core = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / CORE
    for name, (source, first, behind) in UPSTREAM.items():
        text = (core / source).read_text()
        table = between(text, *TABLE) if source.endswith("softmax.cc") else ""
        (folder / name).write_text(table + between(text, first, behind))
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    includes = tuple(f"-I{each}" for each in (HERE, folder, shipped_folder("cmake")))
    words: tuple[str | Path, ...] = (
        zig,
        "c++",
        "-target",
        target,
        *FLAGS,
        *includes,
        "-o",
        folder / program,
        HERE / f"{program}.cc",
    )
    done = run(words, timeout_seconds=600)
    assert done.returncode == 0, done.stderr[-3000:]
    done = run((*RUNS[target], folder / program, str(COMPARED), *mode), timeout_seconds=300)
    return done.returncode, done.stdout


@pytest.mark.parametrize("target", RUNS)
def test_normalized_rows_are_those_of_float64(target: str, tmp_path: Path) -> None:
    """With means far from zero, on which upstream's of 1.21 fail; numbers and what is none are where upstream's are."""
    assert compared("norms", target, tmp_path) == (0, f"{COMPARED} are right\n")


@pytest.mark.parametrize("target", RUNS)
def test_the_softmax_of_bytes_is_upstreams(target: str, tmp_path: Path) -> None:
    """Signed and unsigned, in short and in long rows, of one value and of two; what saturates and what wraps."""
    assert compared("softmax", target, tmp_path) == (0, f"{COMPARED} are the same\n")


def changed(folder: Path, header: str, right: str, wrong: str) -> None:
    text = (shipped_folder("cmake") / header).read_text()
    assert right in text
    (folder / header).write_text(text.replace(right, wrong))


def test_a_processor_without_avx2_keeps_upstreams_normalizations(tmp_path: Path) -> None:
    changed(tmp_path, ROWS, "WidestVector() != 0", "false")
    assert compared("norms", X64, tmp_path, "upstream") == (0, f"{COMPARED} are right\n")


@pytest.mark.parametrize(
    ("header", "right", "wrong"),
    [
        (ROWS, "i + sum * kLanes", "i"),
        (ROWS, "for (; i < count; i++)", "for (; i < count - 1; i++)"),
        (ROWS, "(sums[2] + sums[3])", "sums[2]"),
        (ROWS, "last + (two[0] + two[1])", "two[0] + two[1]"),
        (ROWS, "+ __builtin_shufflevector(all, all, 4, 5, 6, 7)", ""),
        (ROWS, "2, 3, 0, 1)", "0, 1, 2, 3)"),
        (ROWS, "const float sum = simplified ? 0 : Sum", "const float sum = Sum"),
        (ROWS, "simplified ? 0 : sum, output", "sum, output"),
        (ROWS, "shift = -mean", "shift = 0"),
        (ROWS, "difference * difference", "(difference + mean) * (difference + mean) - mean * mean"),
        (ROWS, "+ epsilon", ""),
        (ROWS, " + Load(kind, biases + i)", ""),
        (ROWS, "if (more != nullptr)", "if (false)"),
        (ROWS, "if (sums != nullptr)", "if (false)"),
        (ROWS, "1 / std::sqrt(squares / size + epsilon)", "std::sqrt(size / squares)"),
        (LAYER, "broadcast > 0 ?", "broadcast > 1 ?"),
        (LAYER, "row / broadcast", "row"),
        (LAYER, "row % -broadcast", "row"),
        (LAYER, "bias + offset,", "bias,"),
        (LAYER, "scale + offset,", "scale,"),
        (LAYER, "output + row * size", "output"),
        (LAYER, "mean[row] = middle", "mean[row] = 0"),
        (LAYER, "inverse[row] = factor", "inverse[row] = 1 / factor"),
        (SKIP, "start % skip_size", "start"),
        (SKIP, "sums + start", "sums"),
        (SKIP, "skip_size, bias, output", "skip_size, nullptr, output"),
    ],
)
def test_a_wrong_normalization_is_seen(tmp_path: Path, header: str, right: str, wrong: str) -> None:
    changed(tmp_path, header, right, wrong)
    assert compared("norms", X64, tmp_path)[0] != 0


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("table + ByteTable::kValues / 2, B", "table, B"),
        ("return ordered_;", "return table;"),
        ("0.49f *", "5.0f *"),
        ("std::memset(bytes_, rounding.zero,", "std::memset(bytes_, 0,"),
        ("kTogether * columns_, output +=", "columns_, output +="),
        ("for (; rows > 0; rows--", "for (; rows > 1; rows--"),
        ("below[row] + input", "input"),
        ("Fill(sum) + below", "Fill(sum)"),
        ("exps_ + below, sum", "exps_, sum"),
        ("std::min(kByteBlock, columns_ - i)", "kByteBlock"),
        ("static_cast<float>(255 - zero)", "1000.0f"),
        ("values += kRounding;", "values += kRounding - 1;"),
        ("(kRoundingBits - zero)", "kRoundingBits"),
        ("input + first * columns", "input"),
        ("output + first * columns", "output"),
    ],
)
def test_a_wrong_softmax_is_seen(tmp_path: Path, right: str, wrong: str) -> None:
    changed(tmp_path, SOFTMAX, right, wrong)
    assert compared("softmax", X64, tmp_path)[0] != 0
