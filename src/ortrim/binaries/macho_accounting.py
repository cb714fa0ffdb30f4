"""Where every byte of a Mach-O library is: by section, for each of its architectures."""

from collections.abc import Iterator
from typing import Final

from ortrim.binaries.components import PADDING
from ortrim.binaries.extents import Claim, divided
from ortrim.binaries.file_layout import HEADERS
from ortrim.binaries.leaves import Accounting, Leaf
from ortrim.binaries.macho import diagnosed
from ortrim.binaries.macho_image import read_sections
from ortrim.binaries.macho_layout import fat_parts, is_fat
from ortrim.core.macho import MachSection

BY_SECTION: Final = "a Mach-O library is told by section alone: object files and operators are not known"


def account_macho(data: bytes, where: str) -> Accounting:
    """Return the leaves of a Mach-O library, a component for each segment; their sizes sum to the file's.

    In a file of several architectures each has its own. Raises `BinaryError` (`corrupt-mach-o`).
    """
    with diagnosed(where):
        parts = tuple(fat_parts(data)) if is_fat(data) else (("", data),)
        read = tuple((f"{name} " if name else "", part, read_sections(part)) for name, part in parts)
    leaves = [leaf for said, part, sections in read for leaf in _leaves(said, len(part), sections)]
    between = len(data) - sum(leaf.size_bytes for leaf in leaves)
    if between:
        leaves.append(_unnamed("", HEADERS, between))
    return Accounting(
        file_bytes=len(data),
        zeroed_bytes=sum(each.size_bytes for _, _, sections in read for each in sections if each.zeroed),
        leaves=tuple(leaves),
        mapped=False,
        notes=(BY_SECTION,),
    )


def _leaves(said: str, size: int, sections: tuple[MachSection, ...]) -> Iterator[Leaf]:
    """Yield the leaves of one architecture, of which the names begin with what it is `said` to be."""
    claims = [
        Claim(start=each.offset, end=each.offset + each.size_bytes, owner=each) for each in sections if not each.zeroed
    ]
    for piece in divided(0, size, claims):
        if piece.owner is None:
            yield _unnamed(said, PADDING if piece.start else HEADERS, piece.size_bytes)
        else:
            name = ",".join(filter(None, (piece.owner.segment, piece.owner.name)))
            component = f"{said}{piece.owner.segment}"
            yield Leaf(
                component=component, section=f"{said}{name}", size_bytes=piece.size_bytes, symbol=f"{said}{name}"
            )


def _unnamed(said: str, what: str, size: int) -> Leaf:
    return Leaf(component=f"{said}{what}", section=f"{said}{what}", size_bytes=size, symbol=f"{said}{what}")
