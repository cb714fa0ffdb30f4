"""Compiling alone, on a machine without models and devices: the first half of a build on several machines."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.console import Console
from ortrim.core.plan import PlannedTarget
from ortrim.pipeline.builders import native_executor
from ortrim.pipeline.workflow_jobs.transfer import export_compiled
from ortrim.tools.javac import find_jdk

LOGS: Final = "logs"


def compile_targets(
    targets: Iterable[PlannedTarget], sources: Path, destination: Path, console: Console
) -> tuple[Path, ...]:
    """Compile targets, or take what was compiled before, and write an archive of each into `destination`.

    `sources` is the folder of the source tree. Of an Android target the JNI library comes along, so that whoever
    packages it needs no NDK. Raises what building raises.
    """
    return tuple(_compile(target, sources, destination, console) for target in targets)


def _compile(target: PlannedTarget, sources: Path, destination: Path, console: Console) -> Path:
    identifier = target.job.target.identifier
    with console.step(f"compile {identifier}") as step:
        executor = native_executor(sources, destination / LOGS / f"{identifier}.log", step)
        result = executor.run(target.job)
        executor.run_runner(target.runner)
        if target.job.android:
            executor.run_jni(target.job, result, find_jdk())
        archive = export_compiled(target, destination)
        step.note(f"{archive}: {archive.stat().st_size:,} bytes")
        return archive
