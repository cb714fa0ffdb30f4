"""Which sources of kernels are compiled for size, because the models spend no time worth the name in them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from ortrim.core.kernel_registrations import cold_kernels
from ortrim.executors.paths import JobPaths
from ortrim.executors.type_control import KERNELS
from ortrim.storage.files import storage_errors

SUFFIXES: Final = (".cc", ".h")


def cold_kernel_sources(paths: JobPaths, operators: Iterable[str]) -> tuple[Path, ...]:
    """Return the sources of kernels that no hot operator has use for, in order; none when every kernel is hot.

    Raises `StorageError`.
    """
    hot = tuple(operators)
    core = paths.sources / "onnxruntime" / "onnxruntime"
    return tuple(core / name for name in cold_kernels(_texts(core), hot)) if hot else ()


def _texts(core: Path) -> dict[str, str]:
    files = (file for folder in KERNELS for file in (core / folder).rglob("*") if file.suffix in SUFFIXES)
    with storage_errors(core):
        return {file.relative_to(core).as_posix(): file.read_text(encoding="utf-8", errors="replace") for file in files}
