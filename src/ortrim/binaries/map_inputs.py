"""What a link map says, checked against its library and named without the folders of the machine that linked."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NoReturn

from ortrim.binaries.map_sections import INTERNAL, MapInput, MapOutput
from ortrim.console import counted
from ortrim.errors import BinaryError


def member_name(file: str) -> str:
    """Return the object's own name: `a.cc.o` of `libx.a(a.cc.o)`."""
    return file.rstrip(")").rsplit("(", 1)[-1]


MEMBER: Final = re.compile(r"(.*\.a)\((.*)\)")
THIN: Final = re.compile(r".*\.lto\.((?:.*/)?[^/]*\.a)\((.*) at \d+\)\.o")
"""What lld calls the object that thin link-time optimisation makes of a member of an archive."""


def require_match(sections: Mapping[str, int], outputs: tuple[MapOutput, ...], where: str) -> None:
    """Refuse a map whose output sections are not those of the library, or that lists more in one than it holds.

    `sections` are the library's sections in memory with their sizes in bytes. Raises `BinaryError`
    (`link-map-mismatch`).
    """
    mapped: Counter[str] = Counter()
    listed: Counter[str] = Counter()
    for output in outputs:
        mapped[output.name] += output.size_bytes
        listed[output.name] += sum(inner.size_bytes for inner in output.inputs)
    for name, size in sections.items():
        if mapped[name] != size:
            _refuse(where, f"{name} has {counted(size, 'byte')} in the library and {mapped[name]:,} in the map")
        if listed[name] > size:
            _refuse(where, f"the map lists {counted(listed[name], 'byte')} in {name}, which has {size:,}")


def source_file(file: str) -> str:
    """Return the object file that a map speaks of, for what link-time optimisation made of one the one it was."""
    thin = THIN.fullmatch(file)
    return f"{thin[1]}({thin[2]})" if thin else file


def file_name(file: str) -> str:
    """Name an object file as `libonnxruntime_mlas.a(sgemm.cpp.o)` or `source.c.o`; nothing for the linker's own."""
    if file == INTERNAL:
        return ""
    member = MEMBER.fullmatch(file)
    if member:
        return f"{member[1].rsplit('/', 1)[-1]}({member[2].rsplit('/', 1)[-1]})"
    return file.rsplit("/", 1)[-1]


def input_name(inner: MapInput) -> str:
    """Name an input section by its object file, `sgemm.cpp.o: .rodata`, or alone when the linker made it."""
    if inner.file == INTERNAL:
        return inner.section
    return f"{member_name(file_name(inner.file))}: {inner.section}"


def _refuse(where: str, why: str) -> NoReturn:
    hint = "build again: a library and its link map come from one link"
    raise BinaryError("link-map-mismatch", "the link map is of another library", where=where, why=why, hint=hint)
