"""Convolutions of few positions, of windows that lie in place, and depthwise ones: kernels against float64."""

from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.compiling.dead_kernels import DEPTHWISE
from ortrim.compiling.mechanisms import DIRECT
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("qemu-aarch64-static")]

HERE: Final = Path(__file__).parent / "data" / "direct_convolutions"
CORE: Final = "onnxruntime/onnxruntime"
FLAGS: Final = (
    *("-O2", "-std=c++17", "-fno-exceptions", "-ffunction-sections", "-Wl,--gc-sections"),
    *("-DBUILD_MLAS_NO_ONNXRUNTIME", "-DMlasConv=UpstreamMlasConv"),
)
RUNS: Final = {"x86_64-linux-musl": (), "aarch64-linux-musl": (EMULATIONS["arm64"].user.name,)}
COMPARED: Final = 300


def compared(target: str, kernels: Path, folder: Path, *kind: str) -> tuple[int, str]:
    """Compile the comparison with kernels from a folder; return its exit code and what it says of a kind."""
    core = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / CORE
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    own = (f"-I{HERE}", f"-I{kernels}", f"-I{shipped_folder('cmake')}")
    includes = (*own, f"-I{core}", f"-I{core}/core/mlas/inc", f"-I{core}/core/mlas/lib")
    sources = (HERE / "compare.cc", core / "core" / "mlas" / "lib" / "convolve.cpp")
    words = (zig, "c++", "-target", target, *FLAGS, *includes, "-o", folder / "compare", *sources)
    done = run(words, timeout_seconds=600)
    assert done.returncode == 0, done.stderr[-3000:]
    done = run((*RUNS[target], folder / "compare", str(COMPARED), *kind), timeout_seconds=300)
    return done.returncode, done.stdout


@pytest.mark.parametrize("target", RUNS)
def test_outputs_are_those_of_float64(target: str, tmp_path: Path) -> None:
    """With paddings, strides, dilations, groups, batches, biases, ReLU and threads, of one and of two dimensions."""
    code, said = compared(target, shipped_folder("cmake"), tmp_path)
    assert (code, said.split(",")[0]) == (0, f"{COMPARED} are right"), said


@pytest.mark.parametrize("target", RUNS)
def test_outputs_of_one_filter_a_channel_are_those_of_float64(target: str, tmp_path: Path) -> None:
    """In one piece and in several, with activations of ours and of MLAS's; those are left to MLAS that are for it."""
    code, said = compared(target, shipped_folder("cmake"), tmp_path, "depthwise")
    assert (code, said.split(",")[0]) == (0, f"{COMPARED} are right"), said


def test_rows_of_sixteen_are_right_by_vectors_of_eight(tmp_path: Path) -> None:
    """So that their code is run on processors without AVX-512, too."""
    text = (shipped_folder("cmake") / DIRECT).read_text()
    asked = ("width == 16", "avx512f,")
    assert [text.count(each) for each in asked] == [1, 1]
    (tmp_path / DIRECT).write_text(text.replace(asked[0], "true").replace(asked[1], ""))
    code, said = compared("x86_64-linux-musl", tmp_path, tmp_path)
    assert (code, said.split(",")[0]) == (0, f"{COMPARED} are right"), said


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("- of.Padding[0]", ""),
        ("/ of.KernelShape[1] * of.DilationShape[0]", "/ of.KernelShape[1]"),
        ("y < height && x < width", "y < height"),
        ("return kMasked ?", "return false ?"),
        ("return !padded &&", "return"),
        ("of.Padding[0] | of.Padding[1] | of.Padding[2] | of", "of.Padding[0] + of.Padding[1] + of.Padding[2] + of"),
        ("group * of->FilterCount * of->K", "0"),
        ("offsets + from", "offsets"),
        ("window[1 + i] + rows.sign *", "window[1 + i] +"),
        ("folded[rows.length - 1] = window[rows.length]", "folded[rows.length - 1] = 0"),
        ("filters[0] == 0 && ", ""),
        ("bool even = found.even == filter", "bool even = true"),
        ("std::clamp(mirrored.even, first, last)", "last"),
        ("0x1p-40f * largest", "largest"),
    ],
)
def test_a_wrong_kernel_is_seen(tmp_path: Path, right: str, wrong: str) -> None:
    text = (shipped_folder("cmake") / DIRECT).read_text()
    assert right in text
    (tmp_path / DIRECT).write_text(text.replace(right, wrong))
    assert compared("x86_64-linux-musl", tmp_path, tmp_path)[0] != 0


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("top * y.stride - y.before", "top * y.stride"),
        ("left * x.stride - x.before", "left * x.stride"),
        ("std::min(i, y.output - rows)", "i"),
        ("std::min(j, x.output - columns)", "j"),
        ("std::min(i, last_row)", "i"),
        ("std::min(j, last_column)", "j"),
        ("std::min(column, columns - kWide)", "column"),
        ("std::min(columns, kWide) * sizeof", "kWide * sizeof"),
        ("std::min<ptrdiff_t>(count, kSums)", "kSums"),
        ("std::min(y.Needs(rows), y.input - y0)", "y.Needs(rows)"),
        ("std::min(x.Needs(columns), x.input - x0)", "x.Needs(columns)"),
        ("return std::min(all, ", "return std::max(unit, "),
        ("std::memset(copy, 0, copied * sizeof(float))", "if (top + left == 0) std::memset(copy, 0, sizeof(copy))"),
        ("if (odd != 0)", "if (false)"),
        ("std::min(i, pairs - kPairs)", "i"),
        ("if (count % 2 != 0)", "if (false)"),
        ("(k % kStride) * odd", "0"),
        ("place += x.dilation", "place++"),
        ("place % 2 * phase", "0"),
        ("copy += y.stride * pitch", "copy += pitch"),
        ("c % of.GroupCount", "c - channel"),
        ("bias == nullptr ? 0 : bias[group]", "0"),
        ("low = activation.Parameters.Clip.minimum", "low = 0"),
        ("high = activation.Parameters.Clip.maximum", "high = 1"),
        ("if (!bounded) MlasActivation", "if (false) MlasActivation"),
        ("y.output / rows :", "(y.output + rows - 1) / rows :"),
        ("x.output / columns;", "(x.output + columns - 1) / columns;"),
        ("if (slice + 1 < slices)", ""),
        ("channel = begin % channels", "channel = 0"),
        ("first[0] * x.output + first[1];", "first[0] * x.output;"),
        ("first[0] * x.output + first[1];", "first[1];"),
        ("until - channel, count,", "1, count,"),
        ("of.InputChannels == 1 && ", ""),
        ("of.FilterCount == 1 && ", ""),
        ("of.Beta == 0.0f && ", ""),
        ("of.Algorithm != MlasConvAlgorithmGemmDirect", "true"),
        ("x.stride <= 2", "true"),
        ("(square || y.kernel == 1)", "true"),
        ("copied <= kRoom", "true"),
        ("copied <= kRoom", "copied < kRoom"),
        ("y.kernel == x.kernel && ", ""),
        ("(x.kernel == 3 || x.kernel == 5) && ", ""),
        ("y.stride == x.stride && ", ""),
        ("y.dilation * x.dilation == 1", "y.dilation == 1"),
        ("y.dilation * x.dilation == 1", "x.dilation == 1"),
    ],
)
def test_a_wrong_kernel_of_one_filter_a_channel_is_seen(tmp_path: Path, right: str, wrong: str) -> None:
    text = (shipped_folder("cmake") / DEPTHWISE).read_text()
    assert right in text
    (tmp_path / DEPTHWISE).write_text(text.replace(right, wrong))
    assert compared("x86_64-linux-musl", tmp_path, tmp_path, "depthwise")[0] != 0
