"""Zip archives of a test's own."""

import io
import zipfile
from collections.abc import Mapping


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """Return a zip archive of files of these very names."""
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return memory.getvalue()
