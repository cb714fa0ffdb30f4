"""What `fetch_sources` returns: a folder with one subfolder for each component, under names of our own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.core.plan import SourcePin
from ortrim.sources.resolution import Resolution

LICENCES_FOLDER: Final = "licences"
EMPTY_COMPONENTS: Final = ("utf8_range",)
"""Components that upstream's build files name, but that nothing of protobuf 21.12 needs: empty folders."""


@dataclass(frozen=True, kw_only=True)
class SourceTree:
    """Unpacked sources: `folder` holds `onnxruntime`, `abseil_cpp` and so on, whatever the kind.

    `notes` says, for the kind `auto`, which kinds were passed over and why;
    `resolution` is what the cache has it of, None when it lies elsewhere.
    """

    folder: Path
    kind: str
    pins: tuple[SourcePin, ...]
    notes: tuple[str, ...] = ()
    resolution: Resolution | None = None


def licences(tree: SourceTree) -> tuple[tuple[str, str, Path], ...]:
    """Return (component, SPDX licence identifier, file with the licence's text) for third-party notices."""
    return tuple((pin.name, pin.licence, tree.folder / LICENCES_FOLDER / f"{pin.name}.txt") for pin in tree.pins)
