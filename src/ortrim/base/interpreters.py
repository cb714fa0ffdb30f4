"""Pythons of this machine: ortrim's own, and another for packages that have no wheels for it."""

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import run
from ortrim.errors import ToolError


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """A CPython on this machine: its program, and its version to the second number."""

    program: str
    version: tuple[int, int]

    @property
    def tag(self) -> str:
        """The words for it and this machine, which wheels are for."""
        return f"cp{self.version[0]}{self.version[1]}-{sysconfig.get_platform()}"

    @property
    def isolated(self) -> tuple[str, ...]:
        """The words that start it without site packages; to be run with `scripts.environment_with`."""
        return (self.program, "-S", "-s")


OWN: Final = Interpreter(program=sys.executable, version=sys.version_info[:2])
TOOL_CACHES: Final = ("RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY")
"""Where GitHub's runners keep Pythons beside the one on PATH: `Python/VERSION/MACHINE/bin`."""
PROBE: Final = """\
import sys, sysconfig
print(sys.implementation.name, *sys.version_info[:2], sysconfig.get_config_var("Py_GIL_DISABLED") or 0)
"""
PROBE_SECONDS: Final = 20


def find_interpreter(
    versions: tuple[tuple[int, int], ...], environment: Mapping[str, str] = os.environ
) -> Interpreter | None:
    """Return a CPython with the usual ABI of the first of these versions that there is, on PATH or in a tool cache."""
    for version in versions:
        for program in _programs(version, environment):
            if os.access(program, os.X_OK) and _answer(program) == f"cpython {version[0]} {version[1]} 0":
                return Interpreter(program=str(program), version=version)
    return None


def _programs(version: tuple[int, int], environment: Mapping[str, str]) -> Iterator[Path]:
    number = f"{version[0]}.{version[1]}"
    yield from (Path(folder) / f"python{number}" for folder in os.get_exec_path(environment))
    for cache in filter(None, map(environment.get, TOOL_CACHES)):
        yield from sorted(Path(cache, "Python").glob(f"{number}.*/*/bin/python{number}"))


def _answer(program: Path) -> str:
    try:
        return run((program, "-I", "-c", PROBE), timeout_seconds=PROBE_SECONDS).stdout.strip()
    except ToolError:
        return ""
