"""What a finished build leaves in the cache, without one."""

from pathlib import Path

from ortrim.base.cache import record_entry
from ortrim.compiling.executor import finished_runner
from ortrim.compiling.plan import CompilerCacheUse, PlannedTarget
from ortrim.compiling.workspace import finished_build, write_facts
from ortrim.platforms.android.jni import BINDING, SYMBOLS, finished_jni
from program_files import write_program


def leave_build(target: PlannedTarget) -> Path:
    """Write a library, headers, a log and facts where a build leaves them, and return that folder."""
    folder = finished_build(target.job)
    (folder / "headers").mkdir(parents=True)
    (folder / "libonnxruntime.so").write_bytes(b"\x7fELF" + target.identifier.encode())
    (folder / "headers" / "onnxruntime_c_api.h").write_text("#pragma once\n")
    (folder / "build.log").write_text("done\n")
    write_facts(folder, 1.5, CompilerCacheUse(hits=1, requests=2))
    record_entry(folder)
    return folder


def leave_runner(target: PlannedTarget) -> Path:
    """Write a program where the compiled runner lies, and return it."""
    runner = write_program(finished_runner(target.runner))
    record_entry(runner.parent)
    return runner


def leave_jni(target: PlannedTarget) -> Path:
    """Write a JNI library and its symbols where they lie for an Android target, and return that folder."""
    folder = finished_jni(target.job)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / BINDING).write_bytes(b"\x7fELFjni " + target.identifier.encode())
    (folder / SYMBOLS).write_bytes(b"\x7fELFsymbols")
    record_entry(folder)
    return folder


def leave_compiled(target: PlannedTarget) -> None:
    leave_build(target)
    leave_runner(target)
    if target.job.android:
        leave_jni(target)
