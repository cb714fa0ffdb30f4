"""What a library for Macs is held against: the official one of the same version, by its size."""

from ortrim.binaries.macho_library import architecture_size
from ortrim.core.library_facts import LibrarySize
from ortrim.core.targets import APPLE_ARCHITECTURES, CATALYST, Architecture, OperatingSystem, Target
from ortrim.errors import ToolError
from ortrim.tools.foreign_runtime import mac_library
from ortrim.verify.baseline import NO_SIZE, Baseline


def is_for_mac(target: Target) -> bool:
    """Whether a target is for Macs' own programs; Catalyst's are apps of iPads, of which there is no official wheel."""
    return target.system is OperatingSystem.MACOS and target.identifier != CATALYST


def mac_baseline(version: str, requirements: str | None, architecture: Architecture) -> tuple[Baseline, LibrarySize]:
    """Return the official library for one kind of Mac, none to be run, and its sizes.

    Not every version has a wheel for either kind, nor its digest among the pins; the name then says so. Raises as
    `mac_library` and `architecture_size` do.
    """
    try:
        library = mac_library(version, requirements, architecture.value)
    except ToolError as error:
        if error.reference != "install-failed":
            raise
        library = None
    if library is None:
        return Baseline(library=None, name=f"none: no official wheel of {version} for macOS is pinned"), NO_SIZE
    name = f"onnxruntime {version} (official wheel for macOS, its size alone)"
    return Baseline(library=None, name=name), architecture_size(library, APPLE_ARCHITECTURES[architecture])
