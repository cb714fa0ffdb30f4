"""The native executor with what real builds take: the pinned tools, the shipped runner and the shipped hooks."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from builds import Built, find_build

from ortrim.base.console import Console
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.buildspec.targets import TARGETS
from ortrim.compiling.executor import Executor
from ortrim.compiling.workspace import BuildInputs, Parallelism
from ortrim.pins.shipped import tool_requirements
from ortrim.pipeline.building import executor_for
from ortrim.planning.planned import planned_for
from ortrim.planning.request import Request
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


def built(spec: Path, output: Path) -> Built:
    """Build a buildspec for linux-x64, from the cache if it is there, and return the build."""
    console = Console(stdout=sys.stderr)
    request = Request(spec=spec, target="linux-x64", output=output)
    planned = planned_for(request, console)
    (target,) = planned.plan.targets
    with console.step("build") as step:
        executor_for(planned, target, request, step).run(target.job)
    return find_build(spec, console)
