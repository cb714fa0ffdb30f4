"""Winograd's products on x64, by MLAS's kernel for AVX2 and by ours for AVX-512: against float64."""

from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from convolutional_models import NCHWC_ROWS, change_kernels
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.compiling.dead_kernels import AVX512_CONVOLUTIONS, WINOGRAD_AVX2
from ortrim.models.convert import CPUINFO
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network]

COMPARE: Final = Path(__file__).parent / "data" / "convolutions" / "against_float64.cc"
FLAGS: Final = (
    *("-target", "x86_64-linux-gnu.2.28", "-O2", "-std=c++17", "-fno-exceptions", "-Wall", "-Wextra", "-Werror"),
    *("-Wno-unused-parameter", "-Wno-unused-function", "-DBUILD_MLAS_NO_ONNXRUNTIME", "-DMLAS_NO_EXCEPTION"),
)
SOURCES: Final = ("threading.cpp", "snchwc.cpp", "reorder.cpp", "x86_64/SconvKernelFma3.S", "x86_64/SconvKernelAvx.S")
KERNELS: Final = (WINOGRAD_AVX2, NCHWC_ROWS, "winograd.h")
SAME: Final = (0, "300 of each kind are the same\n")


@pytest.fixture(scope="module")
def mlas() -> Path:
    return fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / "onnxruntime/onnxruntime/core/mlas"


def compiled(mlas: Path, kernels: Path, folder: Path, *more: Path) -> Path:
    """Compile the comparison with kernels from a folder."""
    zig, program = packages_folder("tools", tool_requirements()) / "ziglang" / "zig", folder / "compare"
    sources = (COMPARE, kernels / WINOGRAD_AVX2, *more, *(mlas / "lib" / name for name in SOURCES))
    words: tuple[str | Path, ...] = (
        *FLAGS,
        f"-I{mlas / 'inc'}",
        f"-I{mlas / 'lib'}",
        f"-I{mlas.parents[1]}",
        "-o",
        program,
        *sources,
    )
    done = run((zig, "c++", *words), timeout_seconds=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return program


def compared(*words: str | Path) -> tuple[int, str]:
    done = run((*words, "300"), timeout_seconds=300)
    return done.returncode, done.stdout


def has(feature: str) -> bool:
    """Whether this processor has what kernels take; elsewhere it is proved that they compile."""
    return feature in CPUINFO.read_text().split()


@pytest.mark.parametrize(("more", "feature"), [((), "avx2"), ((AVX512_CONVOLUTIONS,), "avx512vl")])
def test_outputs_are_those_of_float64(mlas: Path, tmp_path: Path, more: tuple[str, ...], feature: str) -> None:
    """With paddings, dilations, groups, sums and activations."""
    kernels = shipped_folder("cmake")
    program = compiled(mlas, kernels, tmp_path, *(kernels / name for name in more))
    assert not has(feature) or compared(program) == SAME


@pytest.mark.needs("qemu-x86_64")
def test_processors_without_avx2_have_no_transforms(mlas: Path, tmp_path: Path) -> None:
    """Neither those without AVX nor those with it."""
    program = compiled(mlas, shipped_folder("cmake"), tmp_path)
    for cpu in ("Nehalem", "SandyBridge"):
        assert compared("qemu-x86_64", "-cpu", cpu, program) == (2, "no transforms\n")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("row.dilation, row.filter_stride", "row.stride, row.filter_stride"),
        ("row.width, filters", "row.width, 1"),
        ("row.flags);", "0);"),
        ("ptrdiff_t{W::kPoints})", "ptrdiff_t{W::kPoints} - 1)"),
    ],
)
def test_a_wrong_product_is_seen(mlas: Path, tmp_path: Path, right: str, wrong: str) -> None:
    change_kernels(KERNELS, tmp_path, right, wrong)
    program = compiled(mlas, tmp_path, tmp_path)
    if has("avx2"):
        code, said = compared(program)
        assert (code, "differs" in said) == (1, True)
