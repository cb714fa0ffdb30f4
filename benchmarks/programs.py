"""C programs of the benchmarks, compiled by the pinned zig."""

import sys
from pathlib import Path

from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.pins.shipped import tool_requirements


def compile_c(*words: str | Path) -> None:
    """Compile with the pinned compiler. Raises `RuntimeError` when it fails."""
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    done = run((zig, "cc", "-std=c11", "-O2", *words), timeout_seconds=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])


def compile_runner(headers: Path, runner: Path, *words: str | Path) -> Path:
    """Compile ortrim's runner with a library's headers and return it. Raises as `compile_c` does."""
    sources = sorted(shipped_folder("runner").glob("*.c"))
    compile_c(*words, f"-I{headers}", *sources, "-o", runner, "-ldl", "-lpthread", "-lm")
    return runner


def print_now(*lines: str) -> None:
    """Print lines at once, so that progress is seen."""
    sys.stdout.write("".join(line + "\n" for line in lines))
    sys.stdout.flush()
