"""Compiling alone, on a machine without models and devices: the first half of a build on several machines."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.plan import PlannedTarget
from ortrim.executors.native import NativeExecutor
from ortrim.executors.parallelism import choose_parallelism
from ortrim.executors.workspace import Inputs
from ortrim.pins.tools import tool_requirements
from ortrim.pipeline.transfer import export_compiled
from ortrim.storage.shipped import shipped_folder
from ortrim.tools.environments import packages_folder

LOGS: Final = "logs"


def compile_targets(
    targets: Iterable[PlannedTarget], sources: Path, destination: Path, console: Console
) -> tuple[Path, ...]:
    """Compile targets, or take what was compiled before, and write an archive of each into `destination`.

    `sources` is the folder of the source tree. Raises what building raises.
    """
    return tuple(_compile(target, sources, destination, console) for target in targets)


def _compile(target: PlannedTarget, sources: Path, destination: Path, console: Console) -> Path:
    identifier = target.job.target.identifier
    with console.step(f"compile {identifier}") as step:
        executor = NativeExecutor(
            inputs=Inputs(
                sources=sources,
                tools=packages_folder("tools", tool_requirements()),
                runner=shipped_folder("runner"),
                hooks=shipped_folder("cmake"),
            ),
            log=(destination / LOGS / f"{identifier}.log").absolute(),
            parallelism=choose_parallelism(None),
            on_progress=step.progress,
            on_note=step.note,
        )
        executor.run(target.job)
        executor.run_runner(target.runner)
        archive = export_compiled(target, destination)
        step.note(f"{archive}: {archive.stat().st_size:,} bytes")
        return archive
