"""Folders of Python packages, installed by pip from pinned requirements into the cache.

They are plain folders (`pip install --target`), not virtual environments, so that they can be made under a
temporary name and renamed when complete.
"""

import hashlib
import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from ortrim.errors import Diagnostic, NetworkError, ToolError
from ortrim.storage.cache import cache_folder
from ortrim.storage.files import disk_full, require_space, says_full
from ortrim.storage.records import cached_folder
from ortrim.tools.command import run

INSTALLED_BYTES: Final = {"tools": 534_000_000}
"""What takes much when it is installed: the toolchain of 1.21.0, with zig."""
PIP_SILENT_SECONDS: Final = 1800
"""pip says a line for each wheel that it begins, and gives up by itself on a network that is silent for 15 s."""
FOREIGN_PYTHON: Final = "312"
"""The Python whose wheels are taken for another machine, where nothing of them is run by a Python."""


def packages_folder(name: str, requirements: str, *, platforms: tuple[str, ...] = ()) -> Path:
    """Return the folder that holds exactly `requirements`, installing them when it is not there yet.

    `requirements` is the text of a requirements file in which every line is pinned with hashes; only wheels are
    taken. The folder is named after the text, this Python and this machine, or after the first of the `platforms`, in
    the words of wheels' names (`manylinux_2_28_aarch64`), when wheels for another machine are wanted.

    Raises `ToolError` (`install-failed`, `pip-missing`), `NetworkError` (`index-unreachable`, `digest-mismatch`) or
    `StorageError` (`disk-full`).
    """
    own = f"cp{sys.version_info.major}{sys.version_info.minor}-{sysconfig.get_platform()}"
    tag = f"cp{FOREIGN_PYTHON}-{platforms[0]}" if platforms else own
    digest = hashlib.sha256(requirements.encode()).hexdigest()[:16]
    folder = cache_folder("packages") / f"{name}-{tag}-{digest}"
    cached_folder(folder, lambda temporary: _install(name, requirements, temporary, platforms), large=True)
    return folder


ISOLATED_PYTHON: Final = (sys.executable, "-S", "-s")
"""The words that start this Python without site packages; to be run with `environment_with`."""


def environment_with(folder: Path) -> dict[str, str]:
    """Return the environment for a Python that sees only the standard library and the packages of `folder`."""
    return {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}


def _install(name: str, requirements: str, temporary: Path, platforms: tuple[str, ...]) -> None:
    require_space(temporary.parent, INSTALLED_BYTES.get(name, 0), f"installing '{name}'")
    listing = temporary / "requirements.txt"
    listing.write_text(requirements)
    command = (sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-deps")
    options = ("--only-binary", ":all:", "--require-hashes", "--target", temporary, "--requirement", listing)
    foreign = ("--implementation", "cp", "--python-version", FOREIGN_PYTHON) if platforms else ()
    machines = tuple(word for platform in platforms for word in ("--platform", platform))
    # In the system's temporary folder pip would need the same room once more.
    with tempfile.TemporaryDirectory(dir=temporary, prefix=".pip-") as work:
        environment = {**pip_environment(), "TMPDIR": work}
        words = (*command, "--no-input", *foreign, *machines, *options)
        done = run(words, environment=environment, silent_seconds=PIP_SILENT_SECONDS)
        if done.returncode != 0:
            raise install_error(name, done.stderr, temporary)


OVERRULING_VARIABLES: Final = (
    "PIP_CONSTRAINT",
    "PIP_NO_BINARY",
    "PIP_PREFIX",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_ROOT",
    "PIP_USER",
)


def pip_environment() -> dict[str, str]:
    """Return the user's environment, in which the index and the proxy are named, without what bends `--target`."""
    return {name: value for name, value in os.environ.items() if name not in OVERRULING_VARIABLES}


UNREACHABLE: Final = ("Retrying (", "Could not fetch URL", "Read timed out")
HASH_MISMATCH: Final = "DO NOT MATCH THE HASHES"


def install_error(name: str, printed: str, folder: Path) -> Diagnostic:
    """Return what pip's own words mean: it has one exit code for all causes.

    `name` says what was to be installed, and `folder` where.
    """
    why = "\n".join(printed.strip().splitlines()[-5:])
    if says_full(folder, printed):
        return disk_full("pip ran out of disk space", folder, where=name, why=why)
    if HASH_MISMATCH in printed:
        hint = "do not use this package index before you know why; a damaged pip cache is emptied by: pip cache purge"
        return NetworkError("digest-mismatch", "a package is not what was pinned", where=name, why=why, hint=hint)
    if "No module named pip" in printed:
        hint = f"run: {sys.executable} -m ensurepip"
        return ToolError("pip-missing", "this Python has no pip", where=name, why=why, hint=hint)
    if any(words in printed for words in UNREACHABLE):
        hint = "check the network, the proxy and pip's settings (pip config list), then run the same command again"
        return NetworkError("index-unreachable", "pip cannot reach the package index", where=name, why=why, hint=hint)
    hint = "check that the package index has these versions for this Python, then run the same command again"
    return ToolError("install-failed", "pip could not install the pinned packages", where=name, why=why, hint=hint)
