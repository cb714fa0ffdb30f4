"""What a finished build leaves in the cache, without one."""

from pathlib import Path

from ortrim.core.artifacts import CompilerCacheUse
from ortrim.core.plan import PlannedTarget
from ortrim.executors.native import finished_runner
from ortrim.executors.results import BuildFacts, finished_build, write_facts


def leave_build(target: PlannedTarget) -> Path:
    """Write a library, headers, a log and facts where a build leaves them, and return that folder."""
    folder = finished_build(target.job)
    (folder / "headers").mkdir(parents=True)
    (folder / "libonnxruntime.so").write_bytes(b"\x7fELF" + target.job.target.identifier.encode())
    (folder / "headers" / "onnxruntime_c_api.h").write_text("#pragma once\n")
    (folder / "build.log").write_text("done\n")
    write_facts(folder, BuildFacts(seconds=1.5, compiler_cache=CompilerCacheUse(hits=1, requests=2)))
    return folder


def leave_runner(target: PlannedTarget) -> Path:
    """Write a program where the compiled runner lies, and return it."""
    runner = finished_runner(target.runner)
    runner.parent.mkdir(parents=True)
    runner.write_text("#!/bin/sh\n")
    runner.chmod(0o755)
    return runner
