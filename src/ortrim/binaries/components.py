"""Which part of ONNX Runtime, or of what it is built with, an object file or a section belongs to."""

import re
from typing import Final

from ortrim.binaries.link_map import INTERNAL

ARCHIVE: Final = re.compile(r"(.*\.a)\(.*\)")
"""A member of a static library: `libonnxruntime_session.a(inference_session.cc.o)`."""
OWN: Final = re.compile(r"(?:lib)?onnxruntime_(\w+)\.(?:a|dir)")
"""ONNX Runtime's own static libraries, and the folders of their objects: `libonnxruntime_session.a`."""
ARCHIVES: Final = (
    (re.compile(r"libonnx(_proto)?\.a|onnx(_proto)?\.dir"), "onnx"),
    (re.compile(r"libprotobuf[\w-]*\.a|libprotobuf[\w-]*\.dir|libutf8_\w+\.a"), "protobuf"),
    (re.compile(r"libabsl_\w+\.a|absl_\w+\.dir"), "abseil"),
    (re.compile(r"libflatbuffers\.a|flatbuffers\.dir"), "flatbuffers"),
    (re.compile(r"libre2\.a|re2\.dir"), "re2"),
    (re.compile(r"libcpuinfo\.a|libclog\.a|cpuinfo\.dir"), "cpuinfo"),
    (re.compile(r"libXNNPACK\.a|libxnnpack[\w-]*\.a|libpthreadpool\.a|XNNPACK\.dir"), "xnnpack"),
    (re.compile(r"libc\+\+\.a"), "libc++"),
    (re.compile(r"libc\+\+abi\.a|libsupc\+\+\.a"), "libc++abi"),
    (re.compile(r"libstdc\+\+\w*\.a"), "libstdc++"),
    (re.compile(r"libunwind\.a|libgcc_eh\.a"), "libunwind"),
    (re.compile(r"libcompiler_rt\.a|libclang_rt\.\S+\.a|libgcc\.a|libc_nonshared\.a"), "compiler-rt"),
)
MADE_BY_LINKER: Final = (
    (re.compile(r"\.(rela?|relr)\..*"), "relocation tables"),
    (re.compile(r"\.(dynsym|dynstr|hash|gnu\.hash|gnu\.version\w*)"), "dynamic symbols"),
    (re.compile(r"\.(plt|got|igot|iplt)(\..*)?|\.dynamic"), "dynamic linking"),
    (re.compile(r"\.eh_frame(_hdr)?|\.gcc_except_table.*"), "unwind tables"),
    (re.compile(r"\.rodata\.str.*"), "string literals"),
    (re.compile(r"\.rodata\.cst.*"), "constants"),
    (re.compile(r"\.note.*"), "notes"),
)
PADDING: Final = "padding"
OTHER: Final = "other"


def component_of(file: str, section: str) -> str:
    """Return the component of an input section; `file` is as the link map names it.

    What the linker makes itself (merged strings, relocation tables) is named by what it is; a file that belongs
    to nothing known is `other`.
    """
    if file == INTERNAL:
        return _first(MADE_BY_LINKER, section) or OTHER
    archive = ARCHIVE.fullmatch(file)
    parts = (archive[1] if archive else file).split("/")
    name = next((part for part in reversed(parts) if part.endswith((".a", ".dir"))), parts[-1])
    own = OWN.fullmatch(name)
    return own[1] if own else _first(ARCHIVES, name) or OTHER


def section_kind(section: str) -> str:
    """Return what an output section without any known input is: `relocation tables`, ..., or `other`."""
    return _first(MADE_BY_LINKER, section) or OTHER


def _first(table: tuple[tuple[re.Pattern[str], str], ...], name: str) -> str | None:
    return next((component for pattern, component in table if pattern.fullmatch(name)), None)
