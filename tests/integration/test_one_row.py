"""Products of one row, LSTMs and GRUs of one sequence: our own code against float64, and MLAS's order of sums."""

import shutil
from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.compiling.mechanisms import ONE_ROW, ONE_ROW_GRU, ONE_ROW_LSTM
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("qemu-aarch64-static")]

HERE: Final = Path(__file__).parent / "data" / "one_row"
CORE: Final = "onnxruntime/onnxruntime"
X64: Final = "x86_64-linux-musl"
ARM64: Final = "aarch64-linux-musl"
FLAGS: Final = (
    *("-O2", "-std=c++17", "-fno-exceptions", "-ffunction-sections", "-Wl,--gc-sections"),
    "-DBUILD_MLAS_NO_ONNXRUNTIME",
)
RUNS: Final = {X64: (), ARM64: (EMULATIONS["arm64"].user.name,)}
ASSEMBLED: Final = {X64: (), ARM64: ("SgemmKernelNeon.S", "SgemvKernelNeon.S")}
COMPARED: Final = 300


def compared(target: str, headers: Path, folder: Path) -> tuple[int, str]:
    """Compile the comparison with headers from a folder; return its exit code and what it says."""
    core = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / CORE
    mlas = core / "core" / "mlas"
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    public = core.parent / "include" / "onnxruntime"
    folders = (HERE, headers, shipped_folder("cmake"), core, mlas / "inc", mlas / "lib", public)
    includes = tuple(f"-I{each}" for each in folders)
    kernels = (mlas / "lib" / "aarch64" / name for name in ASSEMBLED[target])
    made, sources = folder / "compare", (HERE / "compare.cc", HERE / "products.cc", *kernels)
    done = run((zig, "c++", "-target", target, *FLAGS, *includes, "-o", made, *sources), timeout_seconds=600)
    assert done.returncode == 0, done.stderr[-3000:]
    done = run((*RUNS[target], made, str(COMPARED)), timeout_seconds=300)
    return done.returncode, done.stdout


@pytest.mark.parametrize("target", RUNS)
def test_outputs_are_those_of_float64(target: str, tmp_path: Path) -> None:
    """Products of one to three rows; both directions, with and without biases, states, lengths and outputs."""
    code, said = compared(target, shipped_folder("cmake"), tmp_path)
    assert (code, said) == (0, f"{COMPARED} are right, 0 of one row were left to MLAS\n"), said


def test_a_processor_without_avx2_keeps_mlas_kernels(tmp_path: Path) -> None:
    text = (shipped_folder("cmake") / ONE_ROW).read_text()
    (tmp_path / ONE_ROW).write_text(text.replace("WidestVector() != 0", "false"))
    code, said = compared(X64, tmp_path, tmp_path)
    assert code == 0, said
    assert "right, 0 of one row" not in said


@pytest.mark.parametrize(
    ("header", "right", "wrong"),
    [
        (ONE_ROW, "i / 2 * apart", "0"),
        (ONE_ROW, "sums[i] * alpha", "sums[i]"),
        (ONE_ROW, "if (!zero)", "if (zero)"),
        (ONE_ROW, "zero ? 0 : columns, last", "0, last"),
        (ONE_ROW_LSTM, "length - 1 - each", "each"),
        (ONE_ROW_LSTM, "lengths.empty() ? steps : lengths[0]", "steps"),
        (ONE_ROW_LSTM, "bias[i] + bias[i + row]", "bias[i]"),
        (ONE_ROW_LSTM, "Begin(cell, last_cell, size)", "Begin(Values(), last_cell, size)"),
        (ONE_ROW_LSTM, "std::copy_n(before, size, last_hidden);", ""),
        (ONE_ROW_LSTM, "step * directions * size, size, T{}", "0, 0, T{}"),
        (ONE_ROW_LSTM, "sequences == 1 &&", ""),
        (ONE_ROW_LSTM, "steps != 0 &&", ""),
        (ONE_ROW_LSTM, "!coupled && peepholes.empty() &&", "!coupled &&"),
        (ONE_ROW_GRU, "batched_bias_Wh_ : batched_bias_WRh_", "batched_bias_WRh_ : batched_bias_WRh_"),
        (ONE_ROW_GRU, "std::fill_n(linear, size, 0.0f)", "(void)0"),
        (ONE_ROW_GRU, "reset[i] *= before[i]", "reset[i] *= 1"),
        (ONE_ROW_GRU, "step * directions * size, size, 0.0f", "0, 0, 0.0f"),
        (ONE_ROW_GRU, "batch_size_ != 1 ||", ""),
        (ONE_ROW_GRU, "output_gate_ != ", "nullptr == "),
    ],
)
def test_a_wrong_one_is_seen(tmp_path: Path, header: str, right: str, wrong: str) -> None:
    assert compared_wrong(X64, tmp_path, header, right, wrong) != 0


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("p * kPanel * depth", "0"),
        ("val[k / 4]", "val[0]"),
        ("{ each++; }", "{}"),
        ("a + r * lda", "a"),
        ("panels += kSome * depth", "panels += kSome"),
        ("vld1q_f32(to) + sums", "sums"),
    ],
)
def test_a_wrong_product_is_seen_on_arm(tmp_path: Path, right: str, wrong: str) -> None:
    assert compared_wrong(ARM64, tmp_path, "neon_products.h", right, wrong) != 0


def compared_wrong(target: str, folder: Path, header: str, right: str, wrong: str) -> int:
    """Return the comparison's exit code with a header that was changed for the worse."""
    shutil.copy(shipped_folder("cmake") / ONE_ROW, folder)
    text = (shipped_folder("cmake") / header).read_text()
    assert right in text
    (folder / header).write_text(text.replace(right, wrong))
    return compared(target, folder, folder)[0]
