"""Making one source tree out of archives, under names that do not depend on where they came from."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError
from ortrim.pins.shipped import pin_text
from ortrim.pins.source_sets import ComponentPin, GitPin
from ortrim.sources.checkout import Checkout, check_version, copy_checkout
from ortrim.sources.debian_package import is_debian_package, write_data_archive
from ortrim.sources.git import fetch_commit
from ortrim.sources.resolution import Resolution
from ortrim.sources.tree import EMPTY_COMPONENTS, LICENCES_FOLDER
from ortrim.storage.unpack import unpack

LICENCE_NAMES: Final = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENSE.MIT", "COPYING.MPL2", "COPYING")
WORK: Final = ".work"


def lay_out(resolution: Resolution, archives: Mapping[str, Path], folder: Path) -> None:
    """Fill `folder` with a subfolder for each component, and with their licences.

    Raises `SourcesError` or `StorageError` for whatever is not as it should be.
    """
    work = folder / WORK
    work.mkdir()
    _lay_out_runtime(resolution.runtime, archives, folder / "onnxruntime", work)
    check_version(folder / "onnxruntime", resolution.version)
    for component in resolution.dependencies:
        _lay_out_component(component, archives[component.name], folder / component.name, work)
    for name in EMPTY_COMPONENTS:
        (folder / name).mkdir()
    (folder / LICENCES_FOLDER).mkdir()
    for pin in resolution.pins:
        _settle_licence(folder, pin.name, pin.licence)
    shutil.rmtree(work)


def _lay_out_runtime(
    runtime: ComponentPin | GitPin | Checkout, archives: Mapping[str, Path], folder: Path, work: Path
) -> None:
    match runtime:
        case ComponentPin():
            _lay_out_component(runtime, archives[runtime.name], folder, work)
        case GitPin():
            fetch_commit(runtime, work / "git", work / "git.tar")
            unpack(work / "git.tar", folder)
        case Checkout():
            copy_checkout(runtime, folder, work / "checkout")


def _lay_out_component(component: ComponentPin, archive: Path, folder: Path, work: Path) -> None:
    if is_debian_package(archive):
        data = work / f"{component.name}.data"
        write_data_archive(archive, data)
        archive = data
    zip_links = component.origin == "url"
    unpack(archive, folder, strip=component.strip, members=dict(component.take), zip_links=zip_links)
    if component.interface is not None:
        (folder / "CMakeLists.txt").write_text(_interface_project(component.name, component.interface))


def _interface_project(name: str, target: str) -> str:
    """Return the CMake project of a library of headers."""
    return (
        f"add_library(ortrim_{name} INTERFACE)\n"
        f"add_library({target} ALIAS ortrim_{name})\n"
        f"target_include_directories(ortrim_{name} INTERFACE ${{CMAKE_CURRENT_SOURCE_DIR}}/include)\n"
    )


def _settle_licence(folder: Path, name: str, licence: str) -> None:
    """Copy a component's licence text to where `licences` looks; an archive may lack it, so known ones travel along."""
    destination = folder / LICENCES_FOLDER / f"{name}.txt"
    found = next((folder / name / each for each in LICENCE_NAMES if (folder / name / each).is_file()), None)
    text = pin_text(f"licences/{licence}.txt") if found is None else None
    if found is not None:
        shutil.copyfile(found, destination)
    elif text is not None:
        destination.write_text(text, encoding="utf-8")
    else:
        raise SourcesError("licence-missing", f"the sources of {name} hold no licence text", where=name)
