"""NCHWc layout, block size 8: chosen without a word, and computed by AVX-512 as by AVX2."""

import json
import sys
from pathlib import Path
from typing import Final

import onnx
import onnxruntime
import pytest

from convolutional_models import NCHWC_ROWS, blocked, change_kernels, convolutional
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.compiling.dead_kernels import AVX512_CONVOLUTIONS
from ortrim.models.convert import CPUINFO
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network]

HERE: Final = Path(__file__).parent / "data" / "convolutions"
MLAS: Final = "onnxruntime/onnxruntime/core/mlas/lib/x86_64"
FLAGS: Final = (
    "-target",
    "x86_64-linux-gnu.2.28",
    "-Oz",
    "-std=c++17",
    "-fno-exceptions",
    "-Wall",
    "-Wextra",
    "-Werror",
)
COMPARED: Final = 300
PROGRAM: Final = Path(sys.executable).parent / "ortrim"


def test_a_model_of_convolutions_is_built_in_nchwc_layout_by_itself(tmp_path: Path) -> None:
    """From the model alone to a verified library, whatever this processor's own block size is."""
    onnx.save(convolutional(), tmp_path / "net.onnx")
    done = run((PROGRAM, "build", "net.onnx", "--json"), cwd=tmp_path, timeout_seconds=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    (report,) = json.loads(done.stdout)["reports"]
    assert [model["layout"] for model in report["models"]] == ["nchwc8"]
    (device,) = report["devices"]
    assert {each["verdict"] for each in device["parity"]} == {"pass"}
    (model,) = (tmp_path / "artifacts").rglob("net.ort")
    assert {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool"} <= blocked(model)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Compile the comparison; return it and the folder of MLAS's kernels."""
    mlas = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / MLAS
    return compiled(mlas, shipped_folder("cmake"), tmp_path_factory.mktemp("compare") / "compare"), mlas


def compiled(mlas: Path, kernels: Path, program: Path) -> Path:
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    sources = (HERE / "compare.cc", mlas / "SconvKernelFma3.S", mlas / "SconvKernelAvx.S")
    words = (*FLAGS, f"-I{HERE}", f"-I{kernels}", f"-I{mlas}", "-o", program, *sources)
    done = run((zig, "c++", *words), timeout_seconds=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return program


def has_avx512() -> bool:
    """Whether this processor runs the kernels; elsewhere it is proved that they compile."""
    return {"avx512f", "avx512dq", "avx512vl"} <= set(CPUINFO.read_text().split())


def test_outputs_are_those_of_the_avx2_kernels_to_the_last_bit(program: tuple[Path, Path]) -> None:
    """Of every kind of convolution, with and without paddings, before and behind, strides, dilations, biases, ReLU."""
    if not has_avx512():
        return
    done = run((program[0], str(COMPARED)), timeout_seconds=120)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(f"{COMPARED} of each kind are the same")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("kRelu = 4", "kRelu = 16"),
        ("flags & kAccumulate", "flags & 64"),
        ("bias += 2 * kBlock", "bias += kBlock"),
        ("i < kPadding ||", "i + 1 < kPadding ||"),
        ("kReads - kPadding - 2", "kReads - kPadding - 1"),
        ("pixels < wide ? 0xFF", "pixels < wide ? 0xFFFF"),
        ("pixels - std::min(wide, pixels)", "done"),
        (" && !(flags & kAccumulate)", ""),
        ("2 * padding < width", "padding < width"),
        ("if (row.flags & kBias) {", "{"),
        (
            "_mm512_mask3_fmadd_ps(values, weights[x], sums[pair], inside[i])",
            "_mm512_fmadd_ps(values, weights[x], sums[pair])",
        ),
    ],
)
def test_a_wrong_kernel_is_seen(program: tuple[Path, Path], tmp_path: Path, right: str, wrong: str) -> None:
    if not has_avx512():
        return
    change_kernels((AVX512_CONVOLUTIONS, NCHWC_ROWS), tmp_path, right, wrong)
    done = run((compiled(program[1], tmp_path, tmp_path / "mutant"), str(COMPARED)), timeout_seconds=120)
    assert done.returncode != 0
