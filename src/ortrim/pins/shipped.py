"""The pin files, those of tools among them: those that travel with ortrim, and the user's own, which come first."""

import os
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from platformdirs import user_config_path

from ortrim.base.files import chosen_folder
from ortrim.errors import StorageError


def pin_text(name: str) -> str | None:
    """Return the text of the pin file `name`, the user's own in place of the shipped one; None when there is none."""
    own = _own_file(name)
    if own is not None and own.is_file():
        return own.read_text(encoding="utf-8", errors="replace")
    shipped = files(__package__) / name
    return shipped.read_text(encoding="utf-8") if shipped.is_file() else None


def pin_names(folder: str) -> tuple[str, ...]:
    """Return the names, with their folder, of the pin files in `folder`: those of ortrim and the user's, in order."""
    own = _own_file(folder)
    places = (files(__package__) / folder, *([own] if own else []))
    return tuple(sorted({f"{folder}/{file.name}" for place in places if place.is_dir() for file in place.iterdir()}))


def shipped_text(name: str) -> str:
    """Return the text of a pin file that ortrim has, or of the user's own in its place."""
    text = pin_text(name)
    assert text is not None
    return text


def shipped_file(name: str) -> Path:
    """Return the path of a pin file that ortrim has."""
    return Path(__file__).parent / name


def user_pins_folder() -> Path:
    """Return the user's pins folder: `ORTRIM_PINS`, or `pins` in the user's configuration folder."""
    folder = chosen_folder("ORTRIM_PINS", user_config_path)
    return folder if os.environ.get("ORTRIM_PINS") else folder / "pins"


def writable_pins_folder() -> Path:
    """Return where updated pins belong: the checkout that ortrim runs from, else the user's pins folder."""
    here = Path(__file__).resolve().parent
    in_a_checkout = here.parents[1].name == "src" and (here.parents[2] / "pyproject.toml").is_file()
    return here if in_a_checkout and not os.environ.get("ORTRIM_PINS") else user_pins_folder()


def _own_file(name: str) -> Path | None:
    """Return the user's own pin file or folder; a user without a home folder, or with a closed one, has none."""
    try:
        own = user_pins_folder() / name
        return own if own.exists() else None
    except (StorageError, PermissionError):
        if os.environ.get("ORTRIM_PINS"):
            raise
        return None


PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def tool_requirements() -> str:
    """Return the text of the requirements file of the build tools; every line is pinned with hashes."""
    return shipped_text("requirements/tools.txt")


@cache
def tool_versions() -> tuple[tuple[str, str], ...]:
    """Return the pinned tools as (name, version), in the order of the file."""
    return tuple(PINNED.findall(tool_requirements()))


def converter_requirements(version: str) -> str | None:
    """Return the requirements of the full ONNX Runtime `version` for converting models, None when not pinned."""
    return pin_text(f"requirements/onnxruntime-{version}.txt")


def step_requirements(name: str) -> str:
    """Return the requirements of a program that simplifies models, `onnxslim` or `onnxsim`; pinned with hashes."""
    return shipped_text(f"requirements/{name}.txt")
