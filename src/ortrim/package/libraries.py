"""The library as applications find it: by its file, through CMake and through pkg-config."""

import re
from typing import Final

from ortrim.binaries.elf import read_library
from ortrim.core.targets import Architecture, OperatingSystem, Target
from ortrim.errors import PackageError
from ortrim.package.contents import PROGRAM_MODE, PackagedFile, PackagedLink
from ortrim.package.inputs import PackageInputs
from ortrim.package.templates import rendered

LIBRARY: Final = "libonnxruntime.so"
ARCHIVE: Final = "libonnxruntime.a"
SONAME: Final = re.compile(r"libonnxruntime\.so[.0-9]*")
PROCESSORS: Final = {
    Architecture.X64: ("x86_64", "AMD64", "amd64"),
    Architecture.ARM64: ("aarch64", "arm64", "ARM64"),
    Architecture.ARM: ("armv7.*", "armv8l", "armhf", "arm"),
    Architecture.RISCV64: ("riscv64",),
}
"""What CMake may call the processor of a build for each architecture, as regular expressions."""
SYSTEMS: Final = {OperatingSystem.LINUX: "Linux"}
TEMPLATES: Final = {
    "lib/cmake/onnxruntime/onnxruntimeConfig.cmake": "onnxruntimeConfig.cmake.j2",
    "lib/cmake/onnxruntime/onnxruntimeConfigVersion.cmake": "onnxruntimeConfigVersion.cmake.j2",
    "lib/pkgconfig/libonnxruntime.pc": "libonnxruntime.pc.j2",
}


def library_files(inputs: PackageInputs) -> tuple[tuple[PackagedFile, ...], tuple[PackagedLink, ...]]:
    """Return the library and what leads to it: the link for linkers, the CMake and the pkg-config files.

    A static library stands in place of the shared one. The shared library's file is called by its soname, which is
    what a program asks for at run time; `libonnxruntime.so`, which is what a linker asks for, is a link to it.
    Raises `PackageError` (`bad-soname`) and those of `read_library`.
    """
    if inputs.result.archive is not None:
        archive = PackagedFile(path=f"lib/{ARCHIVE}", content=inputs.result.archive)
        return (archive, *_development_files(inputs.job.target, inputs.job.ort_version, ARCHIVE, "")), ()
    soname = read_library(inputs.result.library).soname
    if soname and not SONAME.fullmatch(soname):
        hint = "the library of a build is called libonnxruntime.so, with or without a version"
        where = str(inputs.result.library)
        raise PackageError("bad-soname", f"the library calls itself {soname!r}", where=where, hint=hint)
    name = soname or LIBRARY
    library = PackagedFile(path=f"lib/{name}", content=inputs.result.library, mode=PROGRAM_MODE)
    links = () if name == LIBRARY else (PackagedLink(path=f"lib/{LIBRARY}", target=name),)
    return (library, *_development_files(inputs.job.target, inputs.job.ort_version, name, soname)), links


def _development_files(target: Target, version: str, library: str, soname: str) -> tuple[PackagedFile, ...]:
    values = {
        "version": version,
        "major": version.split(".", maxsplit=1)[0],
        "target": target.identifier,
        "system": SYSTEMS[target.system],
        "processors": PROCESSORS[target.architecture],
        "library": library,
        "is_static": library == ARCHIVE,
        "soname": soname,
    }
    return tuple(PackagedFile(path=path, content=rendered(name, values)) for path, name in TEMPLATES.items())
