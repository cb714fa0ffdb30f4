"""NCHWc layout on ARM64: our own kernels against float64."""

from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from convolutional_models import NCHWC_ROWS, change_kernels
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.compiling.dead_kernels import NEON_CONVOLUTIONS
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("qemu-aarch64-static")]

COMPARE: Final = Path(__file__).parent / "data" / "convolutions" / "against_float64.cc"
BITS: Final = COMPARE.with_name("bits.cc")
MLAS: Final = "onnxruntime/onnxruntime/core/mlas"
FLAGS: Final = (
    *("-target", "aarch64-linux-musl", "-O2", "-std=c++17", "-fno-exceptions", "-Wall", "-Wextra", "-Werror"),
    *("-Wno-unused-parameter", "-DBUILD_MLAS_NO_ONNXRUNTIME", "-DMLAS_NO_EXCEPTION"),
)
COMPARED: Final = 300
KERNELS: Final = (NEON_CONVOLUTIONS, NCHWC_ROWS, "winograd.h")


@pytest.fixture(scope="module")
def mlas() -> Path:
    return fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / MLAS


def compared(mlas: Path, kernels: Path, folder: Path, count: int = COMPARED) -> tuple[int, str]:
    """Compile the comparison with kernels from a folder; return its exit code and what it says."""
    zig, program = packages_folder("tools", tool_requirements()) / "ziglang" / "zig", folder / "compare"
    sources = (COMPARE, kernels / NEON_CONVOLUTIONS, mlas / "lib" / "threading.cpp")
    words = (*FLAGS, f"-I{mlas / 'inc'}", f"-I{mlas / 'lib'}", f"-I{mlas.parents[1]}", "-o", program, *sources)
    done = run((zig, "c++", *words), timeout_seconds=600)
    assert done.returncode == 0, done.stderr[-3000:]
    user = EMULATIONS["arm64"].user.name
    done = run((user, program, str(count)), timeout_seconds=300)
    return done.returncode, done.stdout


def test_outputs_are_those_of_float64(mlas: Path, tmp_path: Path) -> None:
    """Of every kind of convolution, pooling and reorders, with paddings, strides, dilations, groups, sums and ReLU."""
    assert compared(mlas, shipped_folder("cmake"), tmp_path) == (0, f"{COMPARED} of each kind are the same\n")


def test_tiles_are_right_when_threads_share_their_filters(mlas: Path, tmp_path: Path) -> None:
    change_kernels(KERNELS, tmp_path, "MlasGetMaximumThreadCount(pool)", "37")
    assert compared(mlas, tmp_path, tmp_path, 60) == (0, "60 of each kind are the same\n")


@pytest.mark.needs("qemu-x86_64")
def test_sums_are_equal_to_those_of_x64_to_the_last_bit(mlas: Path, tmp_path: Path) -> None:
    """Sums that begin with a bias or with those of other channels are one long chain: a model was out of parity so."""
    assembly = tuple(mlas / "lib" / "x86_64" / f"SconvKernel{name}.S" for name in ("Fma3", "Avx"))
    ours = (f"-I{shipped_folder('cmake')}", mlas / "lib" / "threading.cpp")
    found = []
    for target, sources, user in (("aarch64", ours, "arm64"), ("x86_64", assembly, "x64")):
        program = tmp_path / target
        words = (*FLAGS[2:], "-Wno-unused-function", f"-I{mlas / 'inc'}", f"-I{mlas / 'lib'}", f"-I{mlas.parents[1]}")
        zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
        done = run((zig, "c++", "-target", f"{target}-linux-musl", *words, BITS, *sources, "-o", program))
        assert done.returncode == 0, done.stderr[-3000:]
        emulator = EMULATIONS["arm64"].user.name if user == "arm64" else "qemu-x86_64"
        found.append(run((emulator, *(("-cpu", "max") if user == "x64" else ()), program)).stdout)
    assert found[0].count("\n") == 96
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("kRelu = 4", "kRelu = 16"),
        ("if (row.flags & kAccumulate)", "if (row.flags & 64)"),
        ("bias += 2 * kBlock", "bias += kBlock"),
        ("done < left ||", ""),
        ("|| done + wide > end", ""),
        ("ORTRIM_BLOCK(n, second, c, d, lane, at)", "ORTRIM_BLOCK(n, filter, c, d, lane, at)"),
        ("IncludePad ? size : inside", "IncludePad ? inside : size"),
        ("std::min(pixel, size - kBlock)", "pixel"),
        ("ptrdiff_t{W::kPoints})", "ptrdiff_t{W::kPoints} - 1)"),
        ("at < of.across.input ? end : first", "end"),
        ("if (i == place.count) return;", ""),
        ("chain == 0 ? 0 : kAccumulate", "0"),
        ("group % of.groups * of.filters", "0"),
    ],
)
def test_a_wrong_kernel_is_seen(mlas: Path, tmp_path: Path, right: str, wrong: str) -> None:
    change_kernels(KERNELS, tmp_path, right, wrong)
    code, said = compared(mlas, tmp_path, tmp_path)
    assert (code, "differs" in said) == (1, True)
