"""Files in and out of an emulated machine: what it holds when it starts, and what a run saved in it."""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ortrim.sources.machines import MachineParts
from ortrim.storage.files import storage_errors
from ortrim.tools.emulators import Emulation
from ortrim.verify.devices.initramfs import Entry, regular
from ortrim.verify.devices.link_needs import libraries_for
from ortrim.verify.devices.machine_protocol import OUT, SHELL

SAVED: Final = "saved"
OUTPUTS: Final = f"{OUT}/{SAVED}"
"""Where the runner saves outputs in the machine."""
PROGRAMS: Final = ("/runner", "/library.so")
"""How the names of files end that are linked in the machine, as `payload` names them."""


def machine_entries(
    emulation: Emulation, parts: MachineParts, shell: Path, payload: Mapping[str, Path]
) -> tuple[Entry, ...]:
    """Return a payload, by its names in the machine, with the shell and the libraries that its programs need.

    Raises `StorageError` for a file that cannot be read.
    """
    folders = [f"usr/lib/{name}" for name in emulation.library_folders]
    programs = [path for name, path in payload.items() if name.endswith(PROGRAMS)]
    libraries = libraries_for(programs, parts.root, folders)
    files = {SHELL.lstrip("/"): shell, **libraries, **payload}
    return tuple(_entry(name, path) for name, path in files.items())


def save_outputs(files: Mapping[str, bytes], destination: Path) -> None:
    """Write what the runner saved, of all files that came back; their names were checked when they were read.

    Raises `StorageError`.
    """
    with storage_errors(destination):
        for name, content in files.items():
            if name.startswith(f"{SAVED}/"):
                target = destination / name.removeprefix(f"{SAVED}/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def _entry(name: str, path: Path) -> Entry:
    with storage_errors(path):
        executable = name.endswith("/runner") or bool(path.stat().st_mode & stat.S_IXUSR)
        return regular(name, path.read_bytes(), executable=executable)
