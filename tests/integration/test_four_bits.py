"""Products with weights of 4 bits on ARM64: our own kernel, ahead of MLAS's source, against float64."""

from pathlib import Path
from typing import Final

import onnxruntime
import pytest

from convolutional_models import change_kernels
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.compiling.dead_kernels import FOUR_BITS
from ortrim.pins.runtime import runtime_pins
from ortrim.pins.shipped import tool_requirements
from ortrim.sources.sources import fetch_sources

pytestmark = [pytest.mark.build, pytest.mark.network, pytest.mark.needs("qemu-aarch64-static")]

COMPARE: Final = Path(__file__).parent / "data" / "four_bits" / "compare.cc"
MLAS: Final = "onnxruntime/onnxruntime/core/mlas"
FLAGS: Final = (
    *("-target", "aarch64-linux-musl", "-mcpu=generic+dotprod", "-std=c++17", "-fno-exceptions", "-Werror"),
    *("-ffunction-sections", "-DBUILD_MLAS_NO_ONNXRUNTIME", "-DMLAS_NO_EXCEPTION"),
)
COMPARED: Final = 300


def compared(header: Path, folder: Path, level: str = "-O2") -> tuple[int, str]:
    """Compile the comparison with a header; return its exit code and what it says."""
    mlas = fetch_sources(runtime_pins(onnxruntime.__version__), "auto").folder / MLAS
    zig, program = packages_folder("tools", tool_requirements()) / "ziglang" / "zig", folder / "compare"
    words = (*FLAGS, level, *(f"-I{each}" for each in (mlas / "inc", mlas / "lib", mlas.parents[1])))
    kernel = folder / "kernel.o"
    compiled = ("-include", header, "-c", mlas / "lib" / "sqnbitgemm_kernel_neon_int8.cpp", "-o", kernel)
    for own in (compiled, (COMPARE, kernel, "-Wl,--gc-sections", "-o", program)):
        done = run((zig, "c++", *words, *own), timeout_seconds=600)
        assert done.returncode == 0, done.stderr[-3000:]
    done = run((EMULATIONS["arm64"].user.name, "-cpu", "cortex-a76", program, str(COMPARED)), timeout_seconds=300)
    return done.returncode, done.stdout


@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_products_are_those_of_float64(tmp_path: Path, level: str) -> None:
    """Of one row and more, of columns and blocks that no tile divides, with and without zero points and bias."""
    assert compared(shipped_folder("cmake") / FOUR_BITS, tmp_path, level) == (0, f"{COMPARED} are right\n")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("kPoints ? -1 : -8", "kPoints ? -1 : -7"),
        ("first % 2 * 4", "0"),
        ("{0, -4, -8, -12}", "{0, -4, -8, -8}"),
        ("halves[h] - point", "halves[h]"),
        ("(count + 1) / 2", "count / 2"),
        ("from.scales[i][first + k]", "from.scales[i][first]"),
        ("vdupq_n_f32(from.scales[i][first])", "vdupq_n_f32(from.scales[i][0])"),
        ("bias + i", "bias"),
        ("output + r * stride", "output + r * columns"),
        ("return taken", "return row_count"),
        ("block != ortrim::kBlock", "false"),
        ("count <= kMostBlocks", "true"),
        ("together == 4 ? 2 : 1", "2"),
    ],
)
def test_a_wrong_kernel_is_seen(tmp_path: Path, right: str, wrong: str) -> None:
    change_kernels((FOUR_BITS,), tmp_path, right, wrong)
    """By its products, or because it ends where it reads or writes what is not its own."""
    assert compared(tmp_path / FOUR_BITS, tmp_path)[0] != 0
