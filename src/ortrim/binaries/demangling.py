"""C++ names as their source writes them, for libraries whose link map does not say them."""

import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError
from ortrim.storage.files import storage_errors
from ortrim.tools.command import run

SCRIPT: Final = Path(__file__).parents[1] / "data" / "scripts" / "demangle.py"
SECONDS: Final = 30.0
MOST_BYTES: Final = 64 << 20


def demangled(names: Collection[str]) -> dict[str, str]:
    """Return what the names say in C++; names of C are left as they are.

    Nothing is returned when the C++ library of this machine does not answer in bounded time and memory, as for names
    that were made to that end. Raises `StorageError`.
    """
    mangled = sorted({name for name in names if name.startswith("_Z") and name.isprintable()})
    if not mangled:
        return {}
    with tempfile.TemporaryDirectory(prefix="ortrim-names-") as folder:
        listing = Path(folder) / "names"
        with storage_errors(listing):
            listing.write_text("\n".join(mangled) + "\n", encoding="utf-8")
        try:
            done = run([sys.executable, "-I", SCRIPT, listing], timeout_seconds=SECONDS, most_bytes=MOST_BYTES)
        except ToolError:
            return {}
    found = done.stdout.splitlines()
    if done.returncode != 0 or len(found) != len(mangled):
        return {}
    return dict(zip(mangled, found, strict=True))
