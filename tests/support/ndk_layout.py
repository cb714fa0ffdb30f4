"""An NDK's layout made of empty files: for finding one, not for compiling."""

from pathlib import Path

from ortrim.platforms.android.ndk import PARTS, PROPERTIES

NDK_VERSION = "27.2.12479018"


def lay_out_ndk(folder: Path, version: str = NDK_VERSION) -> Path:
    """Make empty files where an NDK has its parts, and the one that says its version."""
    for part in PARTS:
        path = folder / part
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix or path.parent.name == "bin":
            path.touch()
        else:
            path.mkdir()
    (folder / PROPERTIES).write_text(f"Pkg.Desc = Android NDK\nPkg.Revision = {version}\n")
    return folder
