"""The names of translation units: a source's path as every machine has it, and back. Pure."""

import posixpath
import re
from typing import Final

REDUCED: Final = re.compile(r"\$\{build\}/[^/]+/op_reduction\.generated/")
"""Where a build with fewer operators compiles its copies of upstream's registration files from."""
ORIGINALS: Final = "${sources}/onnxruntime/"
REGISTRATIONS: Final = re.compile(r"\$\{sources\}/onnxruntime/(.*/(?:cpu_execution_provider|cpu_contrib_kernels)\.cc)")


def symbolic_path(file: str, directory: str, *, sources: str, build: str, hooks: str = "") -> str | None:
    """Return the name of the unit whose source is `file`, None for what is neither source nor generated.

    `file` may be relative to `directory`, as in ninja's compilation database; the others are absolute and free of
    symbolic links. Without `hooks`, ortrim's own sources are no units. The reduced copy of a registration file has its
    original's name: it is the same unit.
    """
    path = posixpath.normpath(posixpath.join(directory, file))
    for name, folder in (("${sources}", sources), ("${build}", build), ("${hooks}", hooks)):
        if not folder:
            continue
        inside = path.removeprefix(posixpath.normpath(folder).rstrip("/") + "/")
        if inside != path:
            return REDUCED.sub(ORIGINALS, f"{name}/{inside}", count=1)
    return None


def compiled_names(unit: str, configuration: str = "MinSizeRel") -> tuple[str, ...]:
    """Return the names under which a build may compile a unit: its own, and that of its reduced copy if it has one."""
    registration = REGISTRATIONS.fullmatch(unit)
    if registration is None:
        return (unit,)
    return unit, f"${{build}}/{configuration}/op_reduction.generated/{registration[1]}"
