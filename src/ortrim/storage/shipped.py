"""Files that travel with ortrim: inside the wheel, or beside `src` in a checkout."""

from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[1]


def shipped_folder(name: str) -> Path:
    """Return the folder `name` (`runner`, `buildspecs`) as it was installed, or the checkout's own."""
    installed = PACKAGE / "data" / name
    return installed if installed.is_dir() else PACKAGE.parents[1] / name
