"""Files that came from another machine, which may have sent anything: nothing of this one is reached through them."""

import shutil
from pathlib import Path

from ortrim.storage.files import storage_errors


def copy_files(source: Path, destination: Path) -> None:
    """Copy the regular files below a folder; links, which a machine may have sent, are not followed."""
    with storage_errors(destination):
        for path in sorted(source.rglob("*")):
            if path.is_file() and not path.is_symlink():
                target = destination / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)


def text_of(path: Path) -> str:
    """Return the text of a regular file; empty for a link, and for what is not there."""
    regular = path.is_file() and not path.is_symlink()
    return path.read_text(encoding="utf-8", errors="replace") if regular else ""
