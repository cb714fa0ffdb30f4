"""The native executor with what real builds take: the pinned tools, the shipped runner and the shipped hooks."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.executor import Executor
from ortrim.compiling.workspace import BuildInputs, Parallelism
from ortrim.pins.shipped import tool_requirements
from ortrim.platforms import platform_of

TWO_JOBS: Final = Parallelism(jobs=2, reason="as asked")


def native_executor(
    sources: Path,
    log: Path,
    *,
    tools: Path | None = None,
    target: str = "linux-x64",
    sdk: Path | None = None,
    parallelism: Parallelism = TWO_JOBS,
    on_note: Callable[[str], None] = lambda _: None,
    cached: bool = True,
) -> Executor:
    """Return a native executor over some sources; the tools are those of the cache in force unless they are given."""
    platform = platform_of(TARGETS[target])
    return Executor(
        inputs=BuildInputs(
            sources=sources.resolve(),
            tools=(tools or packages_folder("tools", tool_requirements())).resolve(),
            runner=shipped_folder("runner"),
            hooks=shipped_folder("cmake"),
            sdk=sdk,
            installed=platform.installed,
            finish=platform.finish,
        ),
        log=log,
        parallelism=parallelism,
        on_progress=lambda *_: None,
        on_note=on_note,
        cached=cached,
    )
