"""What a program or library needs of a machine to be linked at start."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from ortrim.binaries.elf import BoundedStream, diagnosed, read_bytes
from ortrim.errors import BinaryError


@dataclass(frozen=True, kw_only=True)
class LinkNeeds:
    """The linker that a program asks the kernel for, empty for none, and the libraries needed, by name."""

    interpreter: str
    needed: tuple[str, ...]


NOTHING = LinkNeeds(interpreter="", needed=())


def link_needs(path: Path) -> LinkNeeds:
    """Return what an ELF file needs; nothing for what is not one: the machine itself will say so better."""
    try:
        with diagnosed(path):
            elf = ELFFile(BoundedStream(read_bytes(path)))
            segments: list[Any] = list(elf.iter_segments())
            interpreters = [part.get_interp_name() for part in segments if isinstance(part, InterpSegment)]
            dynamic = [part for part in segments if isinstance(part, DynamicSegment)]
            tags: list[Any] = [tag for part in dynamic for tag in part.iter_tags("DT_NEEDED")]
            needed = tuple(str(tag.needed) for tag in tags)
            return LinkNeeds(interpreter="".join(interpreters[:1]), needed=needed)
    except BinaryError:
        return NOTHING


def libraries_for(files: Sequence[Path], root: Path, folders: Sequence[str]) -> dict[str, Path]:
    """Return the files of a machine's `root` that these files need, by their names in that root.

    Libraries are looked for in `folders` of the root, and each one's own needs are followed. What is not there is
    left out.
    """
    found: dict[str, Path] = {}
    waiting = deque(link_needs(file) for file in files)
    while waiting:
        needs = waiting.popleft()
        wanted = [needs.interpreter.lstrip("/"), *(f"{folder}/{name}" for name in needs.needed for folder in folders)]
        for name in wanted:
            inside = bool(name) and ".." not in PurePosixPath(name).parts
            if inside and name not in found and (root / name).is_file():
                found[name] = root / name
                waiting.append(link_needs(root / name))
    return found
