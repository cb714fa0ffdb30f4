"""The pin files: those that travel with ortrim, and the user's own, which come first."""

import os
from importlib.resources import files
from pathlib import Path

from platformdirs import user_config_path

from ortrim.errors import StorageError
from ortrim.storage.files import chosen_folder


def pin_text(name: str) -> str | None:
    """Return the text of the pin file `name`, or None when there is none.

    A file in the user's pins folder replaces the shipped one of the same name. Raises `StorageError` (`no-home`) when
    `ORTRIM_PINS` begins with a home folder that there is not.
    """
    own = _own_file(name)
    if own is not None:
        return own.read_text(encoding="utf-8", errors="replace")
    shipped = files(__package__) / name
    return shipped.read_text(encoding="utf-8") if shipped.is_file() else None


def user_pins_folder() -> Path:
    """Return the user's pins folder: `ORTRIM_PINS`, or `pins` in the user's configuration folder.

    Raises `StorageError` (`no-home`).
    """
    folder = chosen_folder("ORTRIM_PINS", user_config_path)
    return folder if os.environ.get("ORTRIM_PINS") else folder / "pins"


def writable_pins_folder() -> Path:
    """Return where updated pins belong: the checkout that ortrim runs from, else the user's pins folder.

    Raises `StorageError` (`no-home`).
    """
    here = Path(__file__).resolve().parent
    in_a_checkout = here.parents[1].name == "src" and (here.parents[2] / "pyproject.toml").is_file()
    return here if in_a_checkout and not os.environ.get("ORTRIM_PINS") else user_pins_folder()


def _own_file(name: str) -> Path | None:
    """Return the user's own pin file; a user without a home folder, or with one that is closed to them, has none."""
    try:
        own = user_pins_folder() / name
        return own if own.is_file() else None
    except (StorageError, PermissionError):
        if os.environ.get("ORTRIM_PINS"):
            raise
        return None
