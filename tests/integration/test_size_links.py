"""Maps as today's linkers write them: each byte of what they link is accounted for."""

from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import tool_requirements
from ortrim.size.accounting import GROUPINGS, Accounting, account, shares

pytestmark = pytest.mark.network

SOURCES: Final = Path(__file__).parents[1] / "unit" / "size" / "data"
COMPILING: Final = (
    *("-Os", "-fPIC", "-ffunction-sections", "-fdata-sections", "-fno-exceptions", "-fno-rtti", "-DTWO"),
    "-fno-asynchronous-unwind-tables",
)
TARGETS: Final = {
    "x64": "x86_64-linux-gnu.2.28",
    "arm64": "aarch64-linux-gnu.2.28",
    "armhf": "arm-linux-gnueabihf.2.28",
}
MANNERS: Final = {"plain": (), "lto": ("-flto",), "thin": ("-flto=thin",)}


def ran(*words: str | Path) -> None:
    done = run(words)
    assert done.returncode == 0, done.stderr


def archives(folder: Path, compiler: tuple[str | Path, ...], archiver: tuple[str | Path, ...]) -> list[Path]:
    for name in ("kernels", "relu", "common"):
        ran(*compiler, *COMPILING, "-c", SOURCES / f"{name}.cc", "-o", folder / f"{name}.cc.o")
    providers, session = folder / "libonnxruntime_providers.a", folder / "libonnxruntime_session.a"
    ran(*archiver, "rcsD", providers, folder / "kernels.cc.o", folder / "relu.cc.o")
    ran(*archiver, "rcsD", session, folder / "common.cc.o")
    return [providers, session]


def accounted(library: Path) -> Accounting:
    """Return the accounting of a library whose map lies beside it, once it is known to be whole."""
    accounting = account(library, library.with_name("link.map"))
    for key in GROUPINGS.values():
        assert sum(share.size_bytes for share in shares(accounting.leaves, key)) == library.stat().st_size
    return accounting


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("manner", MANNERS)
def test_maps_of_the_pinned_toolchain(tmp_path: Path, target: str, manner: str) -> None:
    """With and without link-time optimisation, for three processors, functions folded."""
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    inputs = archives(tmp_path, (zig, "c++", "-target", TARGETS[target], *MANNERS[manner]), (zig, "ar"))
    linking = ("ld.lld", "--shared", "-s", "--icf=all", "--build-id=none", "--whole-archive")
    ran(zig, *linking, "-Map", tmp_path / "link.map", "-o", tmp_path / "lib.so", *inputs)
    accounting = accounted(tmp_path / "lib.so")
    operators = {leaf.operator for leaf in accounting.leaves}
    assert operators >= {"Add", "Mul", "Relu"}
    assert any("MlasWorkers" in (leaf.symbol, *leaf.folded) for leaf in accounting.leaves)
    assert [note for note in accounting.notes if "LTO" in note] == list(accounting.notes)
    assert bool(accounting.notes) == (manner == "lto")
