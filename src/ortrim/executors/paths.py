"""Where a job's symbolic paths lie on this machine."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

CONFIGURATION: Final = "MinSizeRel"
"""The folder below `build` in which upstream's build.py configures and compiles: its `--config`."""


@dataclass(frozen=True, kw_only=True)
class JobPaths:
    """The folders and files that a job's `${...}` stand for; see `core.plan`."""

    sources: Path
    build: Path
    tools: Path
    wrappers: Path
    config: Path
    runner: Path
    hooks: Path
    zig: Path = Path()
    archive: Path = Path()
    ndk: Path = Path()
    xcode: Path = Path()

    @property
    def configured(self) -> Path:
        """The folder in which CMake and ninja run."""
        return self.build / CONFIGURATION

    @property
    def compiler_scratch(self) -> Path:
        """The folder that zig may fill while it compiles; nothing in it is needed when a build has ended."""
        return self.build / "zig"

    @property
    def link_map(self) -> Path:
        """The map that the last link wrote, if the linker writes one."""
        return self.build / "link.map"

    def resolve(self, argument: str) -> str:
        """Return an argument with its symbolic paths made real; raises KeyError for a name that does not exist."""
        return Template(argument).substitute({name: str(path) for name, path in vars(self).items()})

    def resolve_all(self, arguments: Iterable[str]) -> tuple[str, ...]:
        """Return every argument resolved."""
        return tuple(self.resolve(argument) for argument in arguments)
