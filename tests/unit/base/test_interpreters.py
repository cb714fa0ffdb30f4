"""Finding another Python than ortrim's own."""

import os
import sys
from pathlib import Path

import pytest

from ortrim.base.scripts import OWN, Interpreter, find_interpreter

HERE = sys.version_info[:2]
NAME = f"python{HERE[0]}.{HERE[1]}"
ABSENT = (3, 99)


def shim(folder: Path, text: str, name: str = NAME) -> Path:
    """Write a shell script under a Python's name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder / name


def real(folder: Path) -> Path:
    """Put this Python into a folder under its full name."""
    folder.mkdir(parents=True)
    (folder / NAME).symlink_to(Path(sys.executable).resolve())
    return folder / NAME


@pytest.mark.parametrize(
    "text", ["exit 127", "echo cpython 3 99 0", "echo pypy {} {} 0".format(*HERE), "echo cpython {} {} 1".format(*HERE)]
)
def test_one_that_will_not_do_hides_no_other(tmp_path: Path, text: str) -> None:
    """Shims of versions that are not there, other implementations, and those with another ABI."""
    shim(tmp_path / "first", text)
    program = real(tmp_path / "second")
    path = os.pathsep.join(map(str, (tmp_path / "absent", tmp_path / "first", program.parent)))
    assert find_interpreter((ABSENT, HERE), {"PATH": path}) == Interpreter(program=str(program), version=HERE)
    assert find_interpreter((ABSENT,), {"PATH": path}) is None


@pytest.mark.parametrize("variable", ["RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY"])
def test_one_of_a_runners_tool_cache_is_found(tmp_path: Path, variable: str) -> None:
    """Which is not on PATH there."""
    program = real(tmp_path / "Python" / f"{HERE[0]}.{HERE[1]}.9" / "arm64" / "bin")
    found = find_interpreter((HERE,), {"PATH": str(tmp_path), variable: str(tmp_path)})
    assert found == Interpreter(program=str(program), version=HERE)


def test_our_own_is_known_by_what_its_wheels_are_for() -> None:
    """As pip has it."""
    assert OWN.tag.startswith(f"cp{HERE[0]}{HERE[1]}-linux") or "macosx" in OWN.tag
    assert OWN.isolated == (sys.executable, "-S", "-s")
