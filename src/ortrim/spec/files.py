"""Whether what a buildspec names is there."""

from pathlib import Path


def exists(path: Path, *, folder: bool) -> bool:
    """Whether a folder, or a plain file, is there; a path that cannot exist on this system is not."""
    try:
        return path.is_dir() if folder else path.is_file()
    except (OSError, ValueError):
        return False
