"""The tables of which emulated processor runs what is compiled for which least one, tried pair by pair."""

import shutil
import signal
from pathlib import Path
from typing import Final

import pytest

from ortrim.base.command import run
from ortrim.base.scripts import packages_folder
from ortrim.base.tools import EMULATIONS
from ortrim.buildspec.targets import TARGETS, zig_cpu
from ortrim.pins.shipped import tool_requirements

pytestmark = [pytest.mark.build, pytest.mark.network]

SOURCE: Final = Path(__file__).parent / "data" / "machines" / "baseline.c"
TRIPLES: Final = {
    "linux-arm64": "aarch64-linux-musl",
    "linux-armhf": "arm-linux-musleabihf",
    "linux-riscv64": "riscv64-linux-musl",
}
ALONE: Final = ("-nostdlib", "-static", "-ffreestanding", "-O1", "-fno-sanitize=all", "-s")
SIGILL: Final = {-signal.SIGILL, 128 + signal.SIGILL}


def compiled(target: str, cpu: str, folder: Path) -> Path:
    """Compile the program with all that the baseline takes for granted, as the library itself is compiled."""
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    machine = f"-mcpu={zig_cpu(TARGETS[target].architecture, cpu)}"
    program = folder / cpu
    done = run((zig, "cc", "-target", TRIPLES[target], machine, *ALONE, SOURCE, "-o", program))
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize(
    ("target", "cpu"),
    [
        pytest.param(target, cpu, marks=pytest.mark.needs(emulation.user.name))
        for target in TRIPLES
        for emulation in [EMULATIONS[TARGETS[target].architecture.value]]
        for cpu in emulation.baselines
    ],
)
def test_a_baseline_runs_where_the_table_says_and_nowhere_else(target: str, cpu: str, tmp_path: Path) -> None:
    """All its extensions are there, or the program ends by an illegal instruction."""
    emulation = EMULATIONS[TARGETS[target].architecture.value]
    emulator, program = shutil.which(emulation.user.name), compiled(target, cpu, tmp_path)
    assert emulator is not None
    ended = {name: run((emulator, "-cpu", name, program), cwd=tmp_path).returncode for name in emulation.user_cpus}
    runs = {name for name, code in ended.items() if code == 0}
    assert {code for code in ended.values() if code} <= SIGILL, ended
    assert runs == set(emulation.baselines[cpu]) & set(ended)
