"""Folders of Python packages, installed by pip from pinned requirements into the cache.

They are plain folders (`pip install --target`), not virtual environments, so that they can be made under a
temporary name and renamed when complete.
"""

import hashlib
import sys
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError
from ortrim.storage.cache import cache_folder
from ortrim.storage.folders import publish_folder
from ortrim.tools.command import run


def packages_folder(name: str, requirements: str) -> Path:
    """Return the folder that holds exactly `requirements`, installing them when it is not there yet.

    `requirements` is the text of a requirements file in which every line is pinned with hashes; only wheels are
    taken. The folder is named after the text and this Python. Raises `ToolError` (`install-failed`).
    """
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    digest = hashlib.sha256(requirements.encode()).hexdigest()[:16]
    folder = cache_folder("packages") / f"{name}-{tag}-{digest}"
    publish_folder(folder, lambda temporary: _install(name, requirements, temporary))
    return folder


ISOLATED_PYTHON: Final = (sys.executable, "-S", "-s")
"""The words that start this Python without site packages; to be run with `environment_with`."""


def environment_with(folder: Path) -> dict[str, str]:
    """Return the environment for a Python that sees only the standard library and the packages of `folder`."""
    return {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}


def _install(name: str, requirements: str, temporary: Path) -> None:
    listing = temporary / "requirements.txt"
    listing.write_text(requirements)
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    options = ("--only-binary", ":all:", "--require-hashes", "--target", temporary, "--requirement", listing)
    done = run((*command, *options))
    if done.returncode != 0:
        hint = "check the network and the package index, then run the same command again"
        why = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise ToolError("install-failed", "pip could not install the pinned packages", where=name, why=why, hint=hint)
