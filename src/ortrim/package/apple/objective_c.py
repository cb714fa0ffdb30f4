"""Upstream's Objective-C API, which Swift imports: sources that an app compiles, as both package managers take them."""

from pathlib import Path
from typing import Final

from ortrim.package.apple.inputs import OBJECTIVE_C, AppleInputs
from ortrim.package.apple.reasons import PRIVACY_FILE
from ortrim.package.contents import PackagedFile

TRAINING: Final = ("onnxruntime_training", "ort_checkpoint", "ort_training_session")
"""How the names of files begin that need a runtime which can train."""
ENDINGS: Final = (".h", ".m", ".mm")
PUBLIC: Final = "include"


def objective_c_files(inputs: AppleInputs, privacy: bytes | None) -> tuple[PackagedFile, ...]:
    """Return the sources and headers with their paths from the root of the package, and the privacy manifest.

    The manifest goes along since a static framework's own does not get into an app in every way of linking.
    """
    found = [path for path in _sources(inputs.objective_c) if not path.name.startswith(TRAINING)]
    files = (_file(inputs.objective_c, path) for path in found)
    own = [] if privacy is None else [PackagedFile(path=f"{OBJECTIVE_C}/{PRIVACY_FILE}", content=privacy)]
    return (*files, *own)


def _sources(folder: Path) -> list[Path]:
    """Return the files of the API; its tests and documents lie in folders of their own."""
    candidates = (*folder.iterdir(), *(folder / PUBLIC).iterdir())
    return sorted(path for path in candidates if path.suffix in ENDINGS and path.is_file())


def _file(folder: Path, path: Path) -> PackagedFile:
    return PackagedFile(path=f"{OBJECTIVE_C}/{path.relative_to(folder).as_posix()}", content=path)
