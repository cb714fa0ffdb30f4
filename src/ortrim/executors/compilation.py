"""Upstream's own `build.py` on one build tree: configure, then compile and link."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from ortrim.executors.build_log import ninja_step
from ortrim.executors.leftovers import without_leftovers
from ortrim.executors.paths import JobPaths
from ortrim.executors.places import HERE, Place
from ortrim.executors.regenerated import unchanged_files_keep_their_time
from ortrim.executors.type_control import typed_units, write_type_control

REDUCED: Final = "op_reduction.generated"


class Progress(Protocol):
    """Is told of each step: how many are done, of how many, and the file just made."""

    def __call__(self, done: int, total: int, item: str, /) -> None:
        """Take note of a step."""


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """How `build.py` is called on a tree, and where; what it prints is appended to `log`."""

    paths: JobPaths
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    on_progress: Progress
    place: Place = HERE

    def compile(self) -> "Outcome":
        """Configure the tree and make the library, or stop at the first error."""
        with without_leftovers(self.paths):
            return self._compile()

    def link(self) -> "Outcome":
        """Make the library anew of a tree that is configured and compiled."""
        return self._run("--build")

    def _compile(self) -> "Outcome":
        with unchanged_files_keep_their_time(self.paths.configured / REDUCED):
            outcome = self._run("--update")
        if outcome.failed:
            return outcome
        write_type_control(self.paths, typed_units(self.paths))
        return self._run("--build")

    def _run(self, phase: str) -> "Outcome":
        script = self.paths.sources / "onnxruntime" / "tools" / "ci_build" / "build.py"
        command = (*self.place.python, str(script), phase, *self.arguments)
        lines: list[str] = []
        with self.log.open("a", buffering=1, encoding="utf-8") as log:

            def on_line(line: str) -> None:
                log.write(line + "\n")
                lines.append(line)
                if step := ninja_step(line):
                    self.on_progress(*step)

            code = self.place.stream(
                command, on_line, paths=self.paths, cwd=self.paths.build, environment=self.environment
            )
        return Outcome(code=code, lines=tuple(lines))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The exit code of `build.py` (negative: the signal) and what it printed."""

    code: int
    lines: tuple[str, ...] = field(repr=False)

    @property
    def failed(self) -> bool:
        """Whether it did not end well."""
        return self.code != 0
