"""Which part of ONNX Runtime, or of what it is built with, an object file, a section or a C++ name belongs to."""

import re
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from ortrim.base.command import run
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.binaries.link_map import INTERNAL
from ortrim.compiling import c_api, mechanisms
from ortrim.compiling.dead_kernels import AVX512_CONVOLUTIONS, AVX512_SOURCES
from ortrim.errors import ToolError

ARCHIVE: Final = re.compile(r"(.*\.a)\(.*\)")
"""A member of a static library: `libonnxruntime_session.a(inference_session.cc.o)`."""
OWN: Final = re.compile(r"(?:lib)?onnxruntime_(\w+)\.(?:a|dir)")
"""ONNX Runtime's own static libraries, and the folders of their objects: `libonnxruntime_session.a`."""
C_API: Final = re.compile(
    r"(\w+_c_api|abi_\w+|api_utils|IOBinding|custom_ops|standalone_op_invoker|provider_registration|allocator_adapters"
    r"|lora_adapters|run_options|tensor_type_and_shape|onnxruntime_\w*type_?info|error_code)\.(cc|cpp)\.o"
)
"""Objects of ONNX Runtime's session and framework libraries that do nothing but serve the C API."""
OURS: Final = {
    **dict.fromkeys((*AVX512_SOURCES, AVX512_CONVOLUTIONS), "mlas"), c_api.C_API: "c api", mechanisms.ERRORS: "common",
}  # fmt: skip
"""Ortrim's own sources in `data/cmake`, which are linked by themselves, and the component that each is a part of."""
LINK_TIME: Final = re.compile(r"(.*/)?(lto\.tmp|ld-temp\.o|[^/]*\.lto\.([^/]*\.)?o)")
"""What linkers call the object that link-time optimisation makes of many."""
ARCHIVES: Final = (
    (re.compile(r"libonnx(_proto)?\.a|onnx(_proto)?\.dir"), "onnx"),
    (re.compile(r"libprotobuf[\w-]*\.a|libprotobuf[\w-]*\.dir|libutf8_\w+\.a"), "protobuf"),
    (re.compile(r"libabsl_\w+\.a|absl_\w+\.dir"), "abseil"),
    (re.compile(r"libflatbuffers\.a|flatbuffers\.dir"), "flatbuffers"),
    (re.compile(r"libre2\.a|re2\.dir"), "re2"),
    (re.compile(r"libcpuinfo\.a|libclog\.a|cpuinfo\.dir"), "cpuinfo"),
    (re.compile(r"libXNNPACK\.a|libxnnpack[\w-]*\.a|libpthreadpool\.a|XNNPACK\.dir"), "xnnpack"),
    (re.compile(r"libc\+\+(_static)?\.a|libortrim_cxx\.a|ortrim_cxx\.dir"), "libc++"),
    (re.compile(r"libc\+\+abi\.a|libsupc\+\+\.a"), "libc++abi"),
    (re.compile(r"libstdc\+\+\w*\.a"), "libstdc++"),
    (re.compile(r"libunwind\.a|libgcc_eh\.a"), "libunwind"),
    (re.compile(r"libcompiler_rt\.a|compiler_rt\.o|libclang_rt\.\S+\.a|libgcc\.a"), "compiler-rt"),
    (re.compile(r"libc(_nonshared)?\.a|crt\w*\.o"), "libc"),
)
MADE_BY_LINKER: Final = (
    (re.compile(r"\.(rela?|relr)\..*"), "relocation tables"),
    (re.compile(r"\.(dynsym|dynstr|hash|gnu\.hash|gnu\.version\w*)"), "dynamic symbols"),
    (re.compile(r"\.(plt|got|igot|iplt)(\..*)?|\.dynamic"), "dynamic linking"),
    (re.compile(r"\.eh_frame(_hdr)?|\.gcc_except_table.*|\.ARM\.ex(idx|tab).*|\.gnu_debugdata"), "unwind tables"),
    (re.compile(r"\.rodata\.str.*"), "string literals"),
    (re.compile(r"\.rodata\.cst.*"), "constants"),
    (re.compile(r"\.note.*|\.comment|\.ARM\.attributes|\.riscv\.attributes"), "notes"),
    (re.compile(r"\.symtab(_shndx)?|\.strtab|\.shstrtab"), "symbol table"),
    (re.compile(r"\.z?debug_.*"), "debug information"),
)
NAMESPACES: Final = (
    (re.compile(r"\bgoogle::protobuf::"), "protobuf"),
    (re.compile(r"\bflatbuffers::"), "flatbuffers"),
    (re.compile(r"\b[Mm]las[A-Z]\w*|\bMLAS_\w+"), "mlas"),
    (re.compile(r"\bonnxruntime::"), "onnxruntime"),
    (re.compile(r"\bOrt[A-Z]\w*"), "c api"),
    (re.compile(r"\bonnx::"), "onnx"),
    (re.compile(r"\babsl::"), "abseil"),
    (re.compile(r"\bstd::__(1|ndk1)::"), "libc++"),
    (re.compile(r"\b__cxx?abiv1::|\b__(cxa|gxx)_\w+|\bitanium_demangle::|\boperator (new|delete)\b"), "libc++abi"),
    (re.compile(r"\b_?_?(Unwind|unw)_\w+|\blibunwind::"), "libunwind"),
    (re.compile(r"\bstd::"), "C++ library"),
)
PADDING: Final = "padding"
OTHER: Final = "other"


def component_of(file: str, section: str) -> str:
    """Return the component of an input section of a link map's `file`, by its kind for the linker's own, or `other`."""
    if file == INTERNAL:
        return _first(MADE_BY_LINKER, section) or OTHER
    archive = ARCHIVE.fullmatch(file)
    parts = (archive[1] if archive else file).split("/")
    name = next((part for part in reversed(parts) if part.endswith((".a", ".dir"))), parts[-1])
    own = OWN.fullmatch(name)
    if not archive and (ours := OURS.get(_member(file).removesuffix(".o"))):
        return ours
    if own and own[1] in {"session", "framework"} and C_API.fullmatch(_member(file)):
        return "c api"
    return own[1] if own else _first(ARCHIVES, name) or OTHER


def component_of_symbol(symbol: str) -> str:
    """Return the component that a demangled name speaks of, for code whose object file is not known, or `other`.

    A template of the C++ library belongs to the component of its type. ONNX Runtime's own parts are one component here.
    """
    return next((component for pattern, component in NAMESPACES if pattern.search(symbol)), OTHER)


def _member(file: str) -> str:
    """Return the object's own name: `a.cc.o` of `libx.a(a.cc.o)`."""
    return file.rstrip(")").rsplit("/", 1)[-1].rsplit("(", 1)[-1]


def section_kind(section: str) -> str:
    """Return what an output section without any known input is: `relocation tables`, ..., or `other`."""
    return _first(MADE_BY_LINKER, section) or OTHER


def _first(table: tuple[tuple[re.Pattern[str], str], ...], name: str) -> str | None:
    return next((component for pattern, component in table if pattern.fullmatch(name)), None)


SCRIPT: Final = shipped_folder("scripts") / "demangle.py"
SECONDS: Final = 30.0
MOST_BYTES: Final = 64 << 20


def demangled(names: Collection[str]) -> dict[str, str]:
    """Return what the names say in C++; nothing when this machine's C++ library does not answer within limits."""
    mangled = sorted({name for name in names if name.startswith("_Z") and name.isprintable()})
    if not mangled:
        return {}
    with tempfile.TemporaryDirectory(prefix="ortrim-names-") as folder:
        listing = Path(folder) / "names"
        with storage_errors(listing):
            listing.write_text("\n".join(mangled) + "\n", encoding="utf-8")
        try:
            done = run([sys.executable, "-I", SCRIPT, listing], timeout_seconds=SECONDS, most_bytes=MOST_BYTES)
        except ToolError:
            return {}
    found = done.stdout.splitlines()
    if done.returncode != 0 or len(found) != len(mangled):
        return {}
    return dict(zip(mangled, found, strict=True))
