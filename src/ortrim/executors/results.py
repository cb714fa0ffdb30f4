"""What outlives a build: its results, copied out of the build folder."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from ortrim.core.artifacts import CompiledUnits, CompilerCacheUse, JobResult
from ortrim.core.plan import ARCHIVE, BuildJob, RunnerJob, digest
from ortrim.core.serialization import from_json, to_json
from ortrim.errors import BuildError, StorageError
from ortrim.executors.paths import JobPaths
from ortrim.platforms.providers import providers_of
from ortrim.storage.cache import cache_folder

LIBRARY: Final = "libonnxruntime.so"
DYLIB: Final = "libonnxruntime.dylib"
"""What the library is called on Apple's systems."""
HEADERS: Final = ("core/session/onnxruntime_*.h", "core/providers/cpu/cpu_provider_factory.h")


@dataclass(frozen=True, kw_only=True)
class BuildFacts:
    """What is known of a finished build beside its files; kept in its folder."""

    seconds: float
    compiler_cache: CompilerCacheUse | None
    units: CompiledUnits | None = None


def finished_build(job: BuildJob) -> Path:
    """Return the folder in which a job's finished build lies, or will lie."""
    return cache_folder("builds") / digest(job)[:20]


def linked_archive(job: RunnerJob) -> Path:
    """Return the static library that a runner links, in the finished build that its job names."""
    return cache_folder("builds") / job.links[:20] / ARCHIVE


def result_of(folder: Path) -> JobResult:
    """Return the result that a finished build's folder holds. Raises `StorageError` `build-damaged`."""
    try:
        facts = from_json(BuildFacts, (folder / "facts.json").read_bytes())
    except (OSError, ValidationError) as error:
        what, hint = "a finished build is damaged", f"remove the folder {folder}, then run the same command again"
        raise StorageError("build-damaged", what, where=str(folder), why=str(error), hint=hint) from error
    link_map, archive = folder / "link.map", folder / ARCHIVE
    return JobResult(
        folder=folder,
        library=folder / (DYLIB if (folder / DYLIB).is_file() else LIBRARY),
        link_map=link_map if link_map.is_file() else None,
        headers=folder / "headers",
        log=folder / "build.log",
        seconds=facts.seconds,
        compiler_cache=facts.compiler_cache,
        units=facts.units,
        archive=archive if archive.is_file() else None,
    )


def write_facts(destination: Path, facts: BuildFacts) -> None:
    """Write what `result_of` reads beside the files."""
    (destination / "facts.json").write_text(to_json(facts), encoding="utf-8")


def collect(job: BuildJob, paths: JobPaths, destination: Path, log: Path) -> None:
    """Copy what outlives the build out of its folder.

    Raises `BuildError` `output-missing` when the build ended well without leaving what the plan expects.
    """
    for output in job.expected_outputs:
        if not (paths.build / output).is_file():
            what = f"the build ended well but left no {output}"
            raise BuildError("output-missing", what, where=job.target.identifier, hint=f"see the log: {log}")
    library, *others = job.expected_outputs
    shutil.copy2(paths.build / library, destination / (DYLIB if job.apple else LIBRARY))
    for name in map(str, others):
        shutil.copy2(paths.build / name, destination / name)
    shutil.copyfile(log, destination / "build.log")
    (destination / "headers").mkdir()
    for pattern in (*HEADERS, *(f"core/providers/{name}/*.h" for name in providers_of(job))):
        for header in sorted((paths.sources / "onnxruntime" / "include" / "onnxruntime").glob(pattern)):
            shutil.copyfile(header, destination / "headers" / header.name)
