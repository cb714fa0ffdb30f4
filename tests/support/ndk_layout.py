"""An NDK's layout made of empty files: for finding one, not for compiling."""

from pathlib import Path

import pytest

from ortrim.platforms.android.ndk import PARTS, PREBUILT, PREBUILT_PARTS, PROPERTIES, SDK_VARIABLES, VARIABLES

NDK_VERSION = "27.2.12479018"
LINUX = PREBUILT["Linux", "x86_64"]


def lay_out_ndk(folder: Path, version: str = NDK_VERSION, prebuilt: str = LINUX) -> Path:
    """Make empty files where an NDK for a machine has its parts, and the one that says its version."""
    for part in (*PARTS, *(f"{prebuilt}/{part}" for part in PREBUILT_PARTS)):
        path = folder / part
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix or path.parent.name == "bin":
            path.touch()
        else:
            path.mkdir()
    (folder / PROPERTIES).write_text(f"Pkg.Desc = Android NDK\nPkg.Revision = {version}\n")
    return folder


def forget_ndks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *SDK_VARIABLES):
        monkeypatch.delenv(name, raising=False)
