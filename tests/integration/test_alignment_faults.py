"""Whether the emulator faults where ARMv7 does: only then is a run in it a proof that nothing lies crooked."""

import shutil
from pathlib import Path

import pytest

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.toolchains import zig_toolchain
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.pins.shipped import tool_requirements
from own_caches import zig_of_tests

pytestmark = [pytest.mark.build, pytest.mark.network]

PROGRAM = """
static char bytes[64] __attribute__((aligned(16)));
void _start(void) {
  __asm__ volatile(INSTRUCTION :: "r"(bytes + OFFSET) : "r2", "r3", "d0", "memory");
  __asm__ volatile("mov r7, #1; mov r0, #7; svc 0" ::: "r0", "r7");  /* exit(7) */
}
"""
ENDED = 7
SIGBUS = 7
KILLED = (-SIGBUS, 128 + SIGBUS)


def ran(folder: Path, instruction: str, offset: int) -> int:
    """Return how a program of one instruction at an offset from an aligned address ends in the emulator."""
    toolchain = zig_toolchain(TARGETS["linux-armhf"], "2.28", "0.17.0")
    tools = packages_folder("tools", tool_requirements())
    inputs = BuildInputs(sources=folder, tools=tools, runner=shipped_folder("runner"), hooks=shipped_folder("cmake"))
    paths = prepare_workspace(folder / "work", inputs, toolchain, zig=zig_of_tests())
    paths.configured.mkdir()
    (paths.configured / "program.c").write_text(PROGRAM)
    words = (f'-DINSTRUCTION="{instruction}"', f"-DOFFSET={offset}", "-marm", "-Os", "-nostdlib", "-static")
    command = (paths.wrappers / "cc", *words, "program.c", "-o", "program")
    done = run(command, cwd=paths.configured, environment=job_environment(paths, toolchain))
    assert done.returncode == 0, done.stderr
    emulator = shutil.which("qemu-arm-static")
    assert emulator is not None
    return run((emulator, "-cpu", "cortex-a7", "./program"), cwd=paths.configured).returncode


@pytest.mark.needs("qemu-arm-static")
@pytest.mark.parametrize(
    ("instruction", "offset", "faults"),
    [
        ("ldr r2, [%0]", 2, False),
        ("vld1.32 {d0}, [%0]", 2, False),
        ("ldrd r2, r3, [%0]", 2, True),
        ("ldrd r2, r3, [%0]", 4, False),
        ("ldm %0, {r2, r3}", 2, True),
        ("vldr d0, [%0]", 2, True),
        ("vld1.32 {d0}, [%0:64]", 4, True),
        ("ldrexd r2, r3, [%0]", 4, True),
    ],
)
def test_the_emulator_faults_where_the_processor_does(
    tmp_path: Path, instruction: str, offset: int, *, faults: bool
) -> None:
    """Plain loads may be crooked; pairs, multiples, NEON with a promise and exclusive ones may not: `SIGBUS`."""
    code = ran(tmp_path, instruction, offset)
    assert (code in KILLED) if faults else (code == ENDED)
