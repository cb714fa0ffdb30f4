"""Programs of applications for a package's library: three that run or open a model, one of them twice, and a crash."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ortrim.base.command import run

PROGRAMS: Final = Path(__file__).parents[1] / "integration" / "data" / "programs"
IN_C: Final = PROGRAMS / "runs.c"
IN_CXX: Final = PROGRAMS / "runs.cc"
CLOSES: Final = PROGRAMS / "closes.c"
CRASHES: Final = PROGRAMS / "crashes.c"
"""Its first kernel reads an address at which there is nothing."""
SAID_IN_C: Final = "1.21.0, 3 inputs\n"
SAID_IN_CXX: Final = "1.21.0, silence\n"


def linked(package: Path, compiler: Sequence[str | Path], source: Path, program: Path) -> Path:
    words = (source, "-o", program, f"-I{package}/include/onnxruntime", f"-L{package}/lib", "-lonnxruntime")
    done = run((*compiler, *words, "-ldl", "-lpthread", "-lm"))
    assert done.returncode == 0, done.stderr
    return program


def said(program: Path, package: Path, *launcher: str | Path) -> str:
    done = run((*launcher, program, package / "models" / "silero-vad.ort"))
    assert done.returncode == 0, done.stderr
    return done.stdout
