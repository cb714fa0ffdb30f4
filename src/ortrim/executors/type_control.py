"""Type control for each source file that needs it, so that a change of one operator's types compiles one file.

Upstream writes the types of all operators into one header, which two dozen kernel sources of 1.21.0 read: any change of
it compiles them all again, and no two models share a compiled one. Here each of them gets a copy that holds the lines
of its own operators only. The object is the same, because the other lines specialise templates that it does not name.
Source: `onnxruntime/core/providers/op_kernel_type_control.h`, `tools/ci_build/reduce_op_kernels.py`.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.executors.paths import JobPaths
from ortrim.storage.files import write_if_changed

HEADER: Final = Path("core", "providers", "op_kernel_type_control_overrides.inc")
REDUCED: Final = Path("op_reduction.generated", "onnxruntime")
KERNELS: Final = ("core/providers/cpu", "contrib_ops/cpu")
TYPED: Final = re.compile(r'#include "core/providers/op_kernel_type_control(_utils)?\.h"')
ALLOWED: Final = re.compile(r"ORT_SPECIFY_OP_KERNEL_ARG_ALLOWED_TYPES(_ALL_OPSETS)?\(\s*\w+,\s*(?P<operator>\w+),")


def typed_units(paths: JobPaths) -> tuple[Path, ...]:
    """Return the kernel sources whose code depends on the types that the operator configuration allows, in order."""
    core = paths.sources / "onnxruntime" / "onnxruntime"
    files = (file for folder in KERNELS for file in sorted((core / folder).rglob("*.cc")))
    return tuple(file for file in files if TYPED.search(file.read_text(encoding="utf-8", errors="replace")))


def type_folder(paths: JobPaths, unit: Path) -> Path:
    """Return the include folder of a typed unit's own type control."""
    return paths.build / "types" / "-".join(unit.relative_to(paths.sources).with_suffix("").parts[2:])


def write_type_control(paths: JobPaths, units: Iterable[Path]) -> None:
    """Write each typed unit's header from the one that upstream's configuration has made, where it has changed."""
    generated = paths.configured / REDUCED / HEADER
    if not generated.is_file():
        return
    lines = generated.read_text(encoding="utf-8").splitlines(keepends=True)
    for unit in units:
        words = frozenset(re.findall(r"\w+", unit.read_text(encoding="utf-8", errors="replace")))
        write_if_changed(type_folder(paths, unit) / HEADER, "".join(_own_lines(lines, words)))


def _own_lines(lines: Iterable[str], words: frozenset[str]) -> Iterable[str]:
    """Leave out the types of operators that a source does not name by any word."""
    for line in lines:
        allowed = ALLOWED.match(line)
        if allowed is None or allowed["operator"] in words:
            yield line
