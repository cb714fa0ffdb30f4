"""The tools that ortrim builds with: pinned wheels."""

import re
from functools import cache
from typing import Final

from ortrim.pins.shipped import pin_text

PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def tool_requirements() -> str:
    """Return the text of the requirements file of the build tools; every line is pinned with hashes."""
    text = pin_text("requirements/tools.txt")
    assert text is not None
    return text


@cache
def tool_versions() -> tuple[tuple[str, str], ...]:
    """Return the pinned tools as (name, version), in the order of the file."""
    return tuple(PINNED.findall(tool_requirements()))


def converter_requirements(version: str) -> str | None:
    """Return the requirements of the full ONNX Runtime `version` for converting models, None when not pinned."""
    return pin_text(f"requirements/onnxruntime-{version}.txt")


def step_requirements(name: str) -> str:
    """Return the requirements of a program that simplifies models, `onnxslim` or `onnxsim`; pinned with hashes."""
    text = pin_text(f"requirements/{name}.txt")
    assert text is not None
    return text
