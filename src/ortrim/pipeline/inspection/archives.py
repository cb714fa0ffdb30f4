"""`inspect` of a static library, of whatever origin: what it shows to programs that link it, and what it asks for."""

from pathlib import Path
from typing import Any, Final

from ortrim.binaries.archives import archive_members
from ortrim.binaries.elf import machine_of, with_elf_type
from ortrim.binaries.merged_object import visible_symbols
from ortrim.errors import BinaryError
from ortrim.verify.gates import CXX_PREFIXES, PUBLIC_API

MOST_NAMES: Final = 20
OBJECT: Final = ("ET_REL", "not-an-object", "this is not an object")


def inspect_archive(path: Path) -> dict[str, Any]:
    """Return what is in a static library as JSON-ready data.

    `names_offered` and `names_asked_for` count what its objects show together; those of ONNX Runtime's C API and the
    first of all others, which could clash with a program's own, are told. With `needs_cxx_library` one has to be linked
    beside. `unread` are the members that are no ELF objects. Raises `BinaryError` as `archive_members` does.
    """
    members = archive_members(path)
    offered, asked, machines, unread = set[str](), set[str](), set[str](), []
    for name, content in members:
        try:
            here, elsewhere = visible_symbols(content, f"{path}: {name}")
            machines.add(with_elf_type(content, path, OBJECT, machine_of))
        except BinaryError:
            unread.append(name)
            continue
        offered |= here
        asked |= elsewhere
    others = sorted(offered - PUBLIC_API)
    return {
        "machines": sorted(machines),
        "size_bytes": path.stat().st_size,
        "objects": len(members) - len(unread),
        "unread": unread,
        "names_offered": len(offered),
        "public_api": sorted(offered & PUBLIC_API),
        "other_names": others[:MOST_NAMES],
        "names_asked_for": len(asked - offered),
        "needs_cxx_library": any(name.startswith(CXX_PREFIXES) for name in asked - offered),
        "largest_objects": _largest(members),
    }


def _largest(members: tuple[tuple[str, bytes], ...]) -> list[dict[str, Any]]:
    found = sorted(((len(content), name) for name, content in members), reverse=True)
    return [{"name": name, "size_bytes": size} for size, name in found[:MOST_NAMES]]
