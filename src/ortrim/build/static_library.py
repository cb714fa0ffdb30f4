"""The static library: the objects of the shared one, joined into one that shows applications nothing but the C API."""

import re
from pathlib import Path
from typing import Final

from ortrim.base.files import storage_errors
from ortrim.binaries.elf import read_library
from ortrim.binaries.elf_objects import hide_symbols
from ortrim.binaries.link_map import INTERNAL, read_link_map
from ortrim.build.execution import LOCAL, UNREACHED, ExecutionEnvironment, JobPaths, finished, job_environment
from ortrim.build.plan import ARCHIVE, BuildJob
from ortrim.build.upstream import first_error
from ortrim.errors import BuildError

MEMBER: Final = "onnxruntime.o"
LIBRARY_MEMBER: Final = re.compile(r"(.*\.a)\(.*\)")
OF_EVERY_LINKER: Final = re.compile(r"lib(compiler_rt|ubsan_rt|c_nonshared|c)\.a|crt\w*\.o")
"""What the application's own compiler brings: its runtime and its C library. Two copies of these would be at odds."""
JOINING: Final = ("-r", "--gc-sections", "--force-group-allocation", "--strip-debug")


def write_static_library(job: BuildJob, paths: JobPaths, place: ExecutionEnvironment = LOCAL) -> None:
    """Make `libonnxruntime.a` in the build folder from what the shared library was linked from.

    Its one object holds the same sections, kept for the same exported functions, with the C++ library and without the
    C library and the compiler's runtime, so that a C program links it with those alone; kernels that were left out of
    the one are left out of the other. Raises `BuildError` (`build-failed`) or `BinaryError`.
    """
    shared = paths.build / job.expected_outputs[0]
    exported = read_library(shared).exported
    joined, hidden = paths.build / "joined.o", paths.build / MEMBER
    roots = tuple(word for name in exported for word in ("-u", name))
    script = ("-T", str(paths.hooks / UNREACHED)) if job.build_options.dead_kernel_elimination else ()
    linked = linked_files(paths.link_map)
    _zig(job, paths, place, "ld.lld", *JOINING, *roots, *script, "-o", str(joined), *linked)
    with storage_errors(hidden):
        hidden.write_bytes(hide_symbols(joined.read_bytes(), frozenset(exported), str(joined)))
        joined.unlink()
        (paths.build / ARCHIVE).unlink(missing_ok=True)
    _zig(job, paths, place, "ar", "rcsD", str(paths.build / ARCHIVE), str(hidden))


def linked_files(link_map: Path) -> tuple[str, ...]:
    """Return the objects and static libraries that a link took anything of, in its order; see `OF_EVERY_LINKER`."""
    files: dict[str, None] = {}
    for output in read_link_map(link_map):
        for inner in output.inputs:
            member = LIBRARY_MEMBER.fullmatch(inner.file)
            files.setdefault(member[1] if member else inner.file)
    return tuple(file for file in files if file != INTERNAL and not OF_EVERY_LINKER.fullmatch(Path(file).name))


def _zig(job: BuildJob, paths: JobPaths, place: ExecutionEnvironment, *arguments: str) -> None:
    """Run a tool of the pinned toolchain where the map's relative paths begin."""
    command = (str(paths.tools / "ziglang" / "zig"), *arguments)
    environment = job_environment(paths, job.toolchain)
    code, lines = finished(place, command, paths=paths, cwd=paths.configured, environment=environment)
    if code != 0:
        what = f"the static library cannot be made: zig {arguments[0]} failed"
        why = first_error(lines)
        hint = "the shared library was built: report this, and use linkage = 'shared' for now"
        raise BuildError("build-failed", what, where=job.target.identifier, why=why, hint=hint)
