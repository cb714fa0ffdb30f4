"""Where the programs of a job run: on this machine itself, or in a container of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from ortrim.executors.paths import JobPaths
from ortrim.tools.command import stream
from ortrim.tools.environments import ISOLATED_PYTHON


class Place(Protocol):
    """A place that sees a job's folders under the same names as this machine.

    `python` are the words that start an isolated Python there. `apart` is part of the names of its build trees, which
    know the programs that they were configured with; empty for this machine. `reaches_stores` says whether a compiler
    cache that a team shares can be reached from there.
    """

    @property
    def python(self) -> tuple[str, ...]:
        """The words that start an isolated Python."""

    @property
    def apart(self) -> str:
        """Part of the names of its build trees."""

    @property
    def reaches_stores(self) -> bool:
        """Whether it has a network."""

    def stream(
        self,
        words: Sequence[str],
        on_line: Callable[[str], None],
        *,
        paths: JobPaths,
        cwd: Path,
        environment: Mapping[str, str],
    ) -> int:
        """Run a program of a job, hand over each line of its output, and return its exit code.

        Raises what `tools.command.stream` raises, or what the place itself lacks.
        """


@dataclass(frozen=True, kw_only=True)
class ThisMachine:
    """The machine that ortrim runs on."""

    python: tuple[str, ...] = ISOLATED_PYTHON
    apart: str = ""
    reaches_stores: bool = True

    def stream(
        self,
        words: Sequence[str],
        on_line: Callable[[str], None],
        *,
        paths: JobPaths,  # noqa: ARG002 - the Protocol fixes the parameters
        cwd: Path,
        environment: Mapping[str, str],
    ) -> int:
        """See `Place.stream`."""
        return stream(words, on_line, cwd=cwd, environment=environment)


HERE: Final = ThisMachine()


def finished(
    place: Place, words: Sequence[str], *, paths: JobPaths, cwd: Path, environment: Mapping[str, str]
) -> tuple[int, tuple[str, ...]]:
    """Run a program of a job to its end; return its exit code and what it printed. Raises as `Place.stream` does."""
    lines: list[str] = []
    code = place.stream(words, lines.append, paths=paths, cwd=cwd, environment=environment)
    return code, tuple(lines)
