"""Finished builds on their way from the machine that compiled them to the one that packages them.

A job's build lies in a folder named after the job's digest, wherever it was made. So one archive for each target is all
that travels, with the library, its runner, and what is compiled beside it, as Android's JNI library: put into the
cache, it makes `invoke build` go on as if it had compiled here.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.base.archives import unpack
from ortrim.base.cache import cached_folder, is_kept
from ortrim.base.files import storage_errors
from ortrim.compiling.executor import finished_runner
from ortrim.compiling.plan import PlannedTarget, digest
from ortrim.compiling.workspace import finished_build, result_of
from ortrim.errors import BuildError, Diagnostic
from ortrim.package.package import write_archive
from ortrim.platforms import platform_of

BUILD: Final = "build"
RUNNER: Final = "runner"


def archive_name(target: str) -> str:
    """Return the name of the archive of a compiled target."""
    return f"compiled-{target}.tar.gz"


def is_compiled(target: PlannedTarget, *, java: bool = True) -> bool:
    """Whether everything that `export_compiled` takes of a target is here; without `java`, all but what that needs."""
    beside = platform_of(target.job.target).beside(target.job).values() if java else ()
    return all(map(is_kept, (finished_build(target.job), finished_runner(target.runner).parent, *beside)))


def export_compiled(target: PlannedTarget, destination: Path) -> Path:
    """Write the finished build of a target, its runner and what is beside it as one archive into `destination`."""
    identifier = target.identifier
    if not is_compiled(target):
        raise BuildError("not-compiled", "is not compiled here", where=identifier, hint="run: invoke build")
    archive = destination / archive_name(identifier)
    with storage_errors(destination), tempfile.TemporaryDirectory(prefix="ortrim-compiled-") as work:
        folder = Path(work) / _name(target)
        shutil.copytree(finished_build(target.job), folder / BUILD)
        shutil.copy2(finished_runner(target.runner), folder / RUNNER)
        for name, beside in platform_of(target.job.target).beside(target.job).items():
            shutil.copytree(beside, folder / name)
        write_archive(folder, archive)
    return archive


def import_compiled(targets: Iterable[PlannedTarget], source: Path) -> None:
    """Put the archives of targets, in the folder `source`, where builds and runners are looked for, unless one is."""
    for target in targets:
        archive = source / archive_name(target.identifier)
        if not archive.is_file():
            hint = "its job failed or did not run: see the other jobs of this run"
            where = target.identifier
            raise BuildError("not-compiled", "there is no archive of it", where=where, why=str(archive), hint=hint)
        _import(target, archive)


def _import(target: PlannedTarget, archive: Path) -> None:
    def fill(part: str, check: Callable[[Path], object], folder: Path) -> None:
        _unpack(target, archive, folder, part)
        check(folder)

    platform = platform_of(target.job.target)
    cached_folder(finished_build(target.job), partial(fill, BUILD, result_of))
    cached_folder(finished_runner(target.runner).parent, partial(_unpack, target, archive, part=RUNNER))
    for name, beside in platform.beside(target.job).items():
        cached_folder(beside, partial(fill, name, platform.check_beside))


def _unpack(target: PlannedTarget, archive: Path, folder: Path, part: str) -> None:
    inside = f"{_name(target)}/{part}"
    try:
        unpack(archive, folder, members={inside: RUNNER if part == RUNNER else ""})
    except Diagnostic as error:
        if error.code != "nothing-unpacked":
            raise
        what, why = "was compiled for another plan", f"the archive has no {inside}"
        hint = "both must come from the same run, of the same commit"
        where = target.identifier
        raise BuildError("compiled-for-another-plan", what, where=where, why=why, hint=hint) from error


def _name(target: PlannedTarget) -> str:
    """Name both jobs by their digests: the runner is compiled anew more often than the library."""
    return f"{digest(target.job)[:20]}-{digest(target.runner)[:20]}"
