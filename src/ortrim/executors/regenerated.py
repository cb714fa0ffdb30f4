"""Files that upstream writes anew at each configuration although nothing in them changes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def unchanged_files_keep_their_time(folder: Path) -> Iterator[None]:
    """Give files of `folder` that hold the same bytes afterwards their old time back.

    Ninja compiles by time. Upstream's `reduce_op_kernels.py` removes the registrations and the type control and
    writes them again, which would compile every kernel that reads them.
    """
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in _files(folder)}
    yield
    for file in _files(folder):
        content, time = before.get(file, (None, 0))
        if file.read_bytes() == content:
            os.utime(file, ns=(time, time))


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(file for file in folder.rglob("*") if file.is_file())
