"""A package held against its `SHA256SUMS`."""

from pathlib import Path

from ortrim.storage.sums import check_listed


def check_sums(folder: Path) -> None:
    """Check that a package's folder holds exactly the files that its `SHA256SUMS` lists. Raises as `check_listed`."""
    check_listed(folder, "package", str(folder))
