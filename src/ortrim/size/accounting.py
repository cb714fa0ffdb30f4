"""Where every byte of a library file is: by component, object file, symbol, section and operator."""

import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from ortrim.base.command import run
from ortrim.base.console import counted
from ortrim.base.files import shipped_folder, storage_errors
from ortrim.binaries.elf import read_bytes, with_elf_bytes
from ortrim.binaries.link_map import (
    INTERNAL,
    MapInput,
    MapOutput,
    MapSymbol,
    file_name,
    member_name,
    read_link_map,
    require_match,
    source_file,
)
from ortrim.binaries.macho.files import MachSection, diagnosed, fat_parts, is_fat, is_macho, read_sections
from ortrim.compiling import mechanisms
from ortrim.compiling.dead_kernels import AVX512_CONVOLUTIONS, AVX512_SOURCES, NEON_CONVOLUTIONS, WINOGRAD_AVX2
from ortrim.compiling.translation_units import Owners, UnitIndex, demangled_kernel_key, object_owners
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
    **dict.fromkeys((*AVX512_SOURCES, AVX512_CONVOLUTIONS, NEON_CONVOLUTIONS, WINOGRAD_AVX2), "mlas"),
    "cpu_features.c": "mlas", "unreached.c": "mlas",
    mechanisms.C_API: "c api", mechanisms.ERRORS: "common", mechanisms.KEPT_BLOCKS: "framework",
    "no_demangler.c": "libc++abi", "apple_log_sink.cc": "common", "apple_new.cc": "libc++",
    "close_library.c": "libc",
}  # fmt: skip
"""Our own sources in `resources/cmake`, which are linked by themselves, and the component that each is a part of."""
LINK_TIME: Final = re.compile(r"(.*/)?(lto\.tmp|ld-temp\.o|[^/]*\.lto\.([^/]*\.)?o)")
"""What linkers call the object that link-time optimisation makes of many."""
ARCHIVES: Final = (
    (re.compile(r"libonnx(_proto)?\.a|onnx(_proto)?\.dir"), "onnx"),
    (re.compile(r"libprotobuf[\w-]*\.a|libprotobuf[\w-]*\.dir|libutf8_\w+\.a"), "protobuf"),
    (re.compile(r"libabsl_\w+\.a|absl_\w+\.dir"), "abseil"),
    (re.compile(r"libflatbuffers\.a|flatbuffers\.dir"), "flatbuffers"),
    (re.compile(r"libre2\.a|re2\.dir"), "re2"),
    (re.compile(r"libcpuinfo\.a|libclog\.a|cpuinfo\.dir"), "cpuinfo"),
    (re.compile(r"libXNNPACK\.a|libmicrokernels-prod\.a|libpthreadpool\.a|XNNPACK\.dir"), "xnnpack"),
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
            done = run([sys.executable, "-I", SCRIPT, listing], timeout_seconds=30.0, most_bytes=(64 << 20))
        except ToolError:
            return {}
    found = done.stdout.splitlines()
    if done.returncode != 0 or len(found) != len(mangled):
        return {}
    return dict(zip(mangled, found, strict=True))


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Piece(Generic[T]):
    """The bytes from `start` to before `end`, and whose they are, or are said to be; None for nobody's."""

    start: int
    end: int
    owner: T | None

    @property
    def size_bytes(self) -> int:
        """How many bytes it is, never none."""
        return self.end - self.start


def divided(start: int, end: int, claims: Iterable[Piece[T]]) -> Iterator[Piece[T]]:
    """Yield the pieces of `start` to before `end`, in order, none empty and without a gap.

    Where claims overlap, the one that begins first has the bytes, and of those that begin together the longer one.
    """
    position = start
    for claim in sorted(claims, key=lambda claim: (claim.start, -claim.end)):
        low, high = max(claim.start, position), min(claim.end, end)
        if low >= high:
            continue
        if low > position:
            yield Piece(start=position, end=low, owner=None)
        yield Piece(start=low, end=high, owner=claim.owner)
        position = high
    if position < end:
        yield Piece(start=position, end=end, owner=None)


HEADERS: Final = "file headers"  # the ELF header and the program headers
BETWEEN: Final = "between sections"
"""What the linker leaves free so that sections are aligned, or that no header speaks of."""
RELRO_PADDING: Final = ".relro_padding"
"""Room up to the end of a page that nothing uses; upstream's size check leaves it out too:
https://github.com/microsoft/onnxruntime/blob/v1.21.0/tools/ci_build/github/linux/ort_minimal/readelf_utils.py"""


@dataclass(frozen=True, kw_only=True)
class SizePart:
    """A part of the file: a section's `name`, or one of the names above for what is no section.

    `address` is where its first byte is loaded, 0 if it is not, None for what is no section; `number` is the section's
    in the table.
    """

    name: str
    content: str
    offset: int
    address: int | None = None
    number: int = 0


def file_pieces(elf: ELFFile, file_bytes: int) -> Iterator[tuple[SizePart, Piece[SizePart]]]:
    """Yield the parts of a file of that size, in order; each byte is in exactly one."""
    claims = (claim for claim in (*_headers(elf.header), *_sections(elf)) if claim.end > claim.start)
    for piece in divided(0, file_bytes, claims):
        yield piece.owner or SizePart(name=BETWEEN, content=PADDING, offset=0), piece


def sections_in_memory(elf: ELFFile) -> Counter[str]:
    """Return the sizes in bytes of the sections that are loaded, zero-initialised ones included."""
    sizes: Counter[str] = Counter()
    for section in elf.iter_sections():
        if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name != RELRO_PADDING:
            sizes[section.name] += section["sh_size"]
    return sizes


def zeroed_bytes(elf: ELFFile) -> int:
    """Return how many bytes the library has in memory that are zero at first and are not in the file."""
    return sum(
        section["sh_size"]
        for section in elf.iter_sections()
        if section["sh_type"] == "SHT_NOBITS"
        and section["sh_flags"] & SH_FLAGS.SHF_ALLOC
        and section.name != RELRO_PADDING
    )


def _headers(header: Any) -> Iterator[Piece[SizePart]]:
    programs = header["e_phoff"], header["e_phnum"] * header["e_phentsize"]
    sections = header["e_shoff"], header["e_shnum"] * header["e_shentsize"]
    for name, offset, size in ((HEADERS, 0, header["e_ehsize"]), (HEADERS, *programs), ("section headers", *sections)):
        yield Piece(start=offset, end=offset + size, owner=SizePart(name=name, content="ELF headers", offset=offset))


def _sections(elf: ELFFile) -> Iterator[Piece[SizePart]]:
    for number, section in enumerate(elf.iter_sections()):
        if section["sh_type"] in {"SHT_NULL", "SHT_NOBITS"}:
            continue
        offset = section["sh_offset"]
        part = SizePart(
            name=section.name,
            content=_content(section.name, section["sh_flags"]),
            offset=offset,
            address=section["sh_addr"],
            number=number,
        )
        yield Piece(start=offset, end=offset + section["sh_size"], owner=part)


def _content(name: str, flags: int) -> str:
    """Say what a section is: by its name, or by what may be done with it."""
    kind = section_kind(name)
    if kind != OTHER:
        return kind
    if not flags & SH_FLAGS.SHF_ALLOC:
        return "not loaded"
    if flags & SH_FLAGS.SHF_EXECINSTR:
        return "code"
    return "data" if flags & SH_FLAGS.SHF_WRITE else "read-only data"


REST: Final = "(rest)"  # the symbol of bytes of an input section that no symbol of it covers
NO_OPERATOR: Final = "no operator's kernel"


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """Some bytes of a library file.

    `file` is the object file, empty for what the linker makes; `symbol` is demangled, or says what else the bytes are.
    `operator` is that of the kernel, empty for all other code. `folded` are further names of the same bytes, as ICF
    leaves them.
    """

    component: str
    section: str
    size_bytes: int
    file: str = ""
    symbol: str = ""
    operator: str = ""
    folded: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Accounting:
    """All bytes of a library file: the leaves' sizes sum to `file_bytes`; `zeroed_bytes` come on top in memory.

    `mapped` says whether the object files come from a link map; `notes` say what is not known, and why.
    """

    file_bytes: int
    zeroed_bytes: int
    leaves: tuple[Leaf, ...]
    mapped: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Share:
    """The leaves of one name together; `name` has the fields by which they were grouped."""

    name: tuple[str, ...]
    size_bytes: int
    leaves: tuple[Leaf, ...]


def shares(leaves: Iterable[Leaf], key: Callable[[Leaf], tuple[str, ...]]) -> tuple[Share, ...]:
    """Group leaves by `key`; largest first, and by name among equals."""
    groups: dict[tuple[str, ...], list[Leaf]] = {}
    for leaf in leaves:
        groups.setdefault(key(leaf), []).append(leaf)
    found = (
        Share(name=name, size_bytes=sum(leaf.size_bytes for leaf in each), leaves=tuple(each))
        for name, each in groups.items()
    )
    return tuple(sorted(found, key=lambda share: (-share.size_bytes, share.name)))


def by_operator(leaf: Leaf) -> tuple[str, ...]:
    """Group by the operator whose kernel it is; everything else is one group."""
    return (leaf.operator or NO_OPERATOR,)


def by_symbol(leaf: Leaf) -> tuple[str, ...]:
    """Group by symbol and object file; what has no symbol is named by its file and section."""
    plain = leaf.symbol.startswith((".", REST))
    name = f"{member_name(leaf.file)}: {leaf.section}" if plain and leaf.file else leaf.symbol
    return (name, leaf.file or f"({leaf.component})")


GROUPINGS: Final[Mapping[str, Callable[[Leaf], tuple[str, ...]]]] = {
    "component": lambda leaf: (leaf.component,),
    "operator": by_operator,
    "file": lambda leaf: (leaf.file or f"({leaf.component})",),  # what has no file by what it is
    "symbol": by_symbol,
    "section": lambda leaf: (leaf.section,),
}
"""By what the bytes can be grouped."""


def mapped_leaves(output: MapOutput, start: int, end: int) -> Iterator[Leaf]:
    """Yield the leaves of a section's bytes that are loaded at `start` to before `end`, padding included."""
    section = output.name
    claims = (Piece(start=each.address, end=each.address + each.size_bytes, owner=each) for each in output.inputs)
    for piece in divided(start, end, claims):
        if piece.owner is None:
            yield Leaf(component=PADDING, section=section, symbol=f"in {section}", size_bytes=piece.size_bytes)
        else:
            yield from _input_leaves(piece.owner, section, piece)


def _input_leaves(inner: MapInput, section: str, where: Piece[MapInput]) -> Iterator[Leaf]:
    if inner.file == INTERNAL:
        yield _leaf(inner, section, inner.section, where.size_bytes)
        return
    rest = 0
    for piece in divided(where.start, where.end, _claims(inner.symbols)):
        if piece.owner is None:
            rest += piece.size_bytes
            continue
        first, *others = dict.fromkeys(piece.owner)
        yield _leaf(inner, section, first, piece.size_bytes, tuple(others))
    if rest:
        name = REST if inner.symbols and rest < where.size_bytes else inner.section
        yield _leaf(inner, section, name, rest)


def _claims(symbols: Iterable[MapSymbol]) -> Iterator[Piece[tuple[str, ...]]]:
    """Claim each place once, with all names that it has there; the longest symbol says how far it goes."""
    places: dict[int, list[MapSymbol]] = {}
    for symbol in symbols:
        places.setdefault(symbol.address, []).append(symbol)
    for address, here in places.items():
        names = tuple(symbol.name for symbol in sorted(here, key=lambda symbol: -symbol.size_bytes))
        yield Piece(start=address, end=address + max(symbol.size_bytes for symbol in here), owner=names)


def _leaf(inner: MapInput, section: str, symbol: str, size_bytes: int, folded: tuple[str, ...] = ()) -> Leaf:
    file = source_file(inner.file)
    component = component_of(file, inner.section)
    if component == OTHER and LINK_TIME.fullmatch(file):
        told = component_of_symbol(symbol)
        component = section_kind(section) if told == OTHER else told
    return Leaf(
        component=component, section=section, file=file_name(file), symbol=symbol, size_bytes=size_bytes, folded=folded
    )


KINDS: Final = frozenset({1, 2, 6, 10})
"""STT_OBJECT, STT_FUNC, STT_TLS and STT_GNU_IFUNC: the symbols that stand for bytes of their own."""
FIELDS: Final = {32: ("IIIBBH", (0, 1, 2, 3, 5)), 64: ("IBBHQQ", (0, 4, 5, 1, 3))}
"""How an entry of the table is laid out, and where in it are: name, value, size, info, section's number."""


Symbols = Mapping[int, tuple[MapSymbol, ...]]  # Symbols by the number of their section


def read_symbols(elf: ELFFile) -> Symbols:
    """Return the symbols that have a size, of the full table alone: what is exported would tell little."""
    found: dict[int, list[MapSymbol]] = {}
    for table in elf.iter_sections("SHT_SYMTAB"):
        for section, symbol in _entries(elf, table.data(), elf.get_section(table["sh_link"]).data()):
            found.setdefault(section, []).append(symbol)
    names = demangled({symbol.name for symbols in found.values() for symbol in symbols})
    return {
        section: tuple(replace(symbol, name=names.get(symbol.name, symbol.name)) for symbol in symbols)
        for section, symbols in found.items()
    }


def _entries(elf: ELFFile, table: bytes, names: bytes) -> Iterator[tuple[int, MapSymbol]]:
    """Yield symbols with their sections' numbers; in one go, since pyelftools reads a file bit by bit."""
    layout, places = FIELDS[elf.elfclass]
    entry = struct.Struct(("<" if elf.little_endian else ">") + layout)
    for fields in entry.iter_unpack(table[: len(table) // entry.size * entry.size]):
        name, address, size, info, section = (fields[place] for place in places)
        if size and info & 0xF in KINDS:
            text = names[name : names.find(b"\0", name)].decode(errors="replace")
            yield section, MapSymbol(name=text, address=address, size_bytes=size)


def symbol_leaves(symbols: Iterable[MapSymbol], part: SizePart, start: int, end: int) -> Iterator[Leaf]:
    """Yield the leaves of the bytes of a section that are loaded at `start` to before `end`."""
    claims = (Piece(start=each.address, end=each.address + each.size_bytes, owner=each.name) for each in symbols)
    rest = 0
    for piece in divided(start, end, claims):
        if piece.owner is None:
            rest += piece.size_bytes
            continue
        told = component_of_symbol(piece.owner)
        component = part.content if told == OTHER else told
        yield Leaf(component=component, section=part.name, symbol=piece.owner, size_bytes=piece.size_bytes)
    if rest:
        yield Leaf(component=part.content, section=part.name, symbol=REST, size_bytes=rest)


SHARED: Final = "several in "  # begins the operator of code that serves more than one kernel of its object file
COMMON: Final = "common in "
"""Begins the operator of code of the kernels' library in an object file that registers none."""

Registered = Mapping[str, frozenset[str]]  # the keys of the operators that each object file registers kernels of


def registered_operators(leaves: Iterable[Leaf]) -> Registered:
    """Return which operators' kernels the object files register."""
    found: dict[str, set[str]] = {}
    for leaf in leaves:
        for name in (leaf.symbol, *leaf.folded):
            key = demangled_kernel_key(name)
            if key and leaf.file:
                found.setdefault(leaf.file, set()).add(key)
    return {file: frozenset(names) for file, names in found.items()}


def with_operators(leaves: Iterable[Leaf], registered: Registered, index: UnitIndex | None) -> tuple[Leaf, ...]:
    """Return the leaves with the operators of those that belong to a kernel.

    An object file that registers kernels of one operator is that operator's; of several, a symbol belongs to the
    operator that it alone names, and all else to `several in FILE`. A file that registers none is the operator's for
    whose sake alone it is there, by the index; else, in the kernels' library, it is `common in FILE`.
    """
    owners = object_owners(index, frozenset().union(*registered.values())) if index else {}
    return tuple(replace(leaf, operator=_operator(leaf, registered, owners)) for leaf in leaves)


def _operator(leaf: Leaf, registered: Registered, owners: Owners) -> str:
    keys = registered.get(leaf.file)
    if keys is None:
        return _of_helper(leaf, owners)
    linked = LINK_TIME.fullmatch(leaf.file) is not None
    if len(keys) == 1 and not linked:
        return _shown(next(iter(keys)))
    named = {key for key in keys if _names(leaf.symbol, key)}
    if len(named) == 1:
        return _shown(named.pop())
    return "" if linked else SHARED + member_name(leaf.file)


def _of_helper(leaf: Leaf, owners: Owners) -> str:
    kernels = leaf.component.startswith("providers")
    if not leaf.file or not (kernels or leaf.component == "mlas"):
        return ""
    sole = owners.get(member_name(leaf.file), frozenset())
    if len(sole) == 1:
        return _shown(next(iter(sole)))
    return COMMON + member_name(leaf.file) if kernels else ""


def _names(symbol: str, operator: str) -> bool:
    key = demangled_kernel_key(symbol)
    if key:
        return key == operator
    return re.search(rf"\b{re.escape(operator.rpartition(':')[2])}\b", symbol) is not None


def _shown(key: str) -> str:
    return key.removeprefix("ai.onnx:")


def account_macho(data: bytes, where: str) -> Accounting:
    """Return the leaves of a Mach-O library, a component for each segment of each architecture."""
    with diagnosed(where):
        parts = tuple(fat_parts(data)) if is_fat(data) else (("", data),)
        read = tuple((f"{name} " if name else "", part, read_sections(part)) for name, part in parts)
    leaves = [leaf for said, part, sections in read for leaf in _macho_accounting_leaves(said, len(part), sections)]
    between = len(data) - sum(leaf.size_bytes for leaf in leaves)
    if between:
        leaves.append(_unnamed("", HEADERS, between))
    return Accounting(
        file_bytes=len(data),
        zeroed_bytes=sum(each.size_bytes for _, _, sections in read for each in sections if each.zeroed),
        leaves=tuple(leaves),
        mapped=False,
        notes=("a Mach-O library is divided only by section: object files and operators are not known",),
    )


def _macho_accounting_leaves(said: str, size: int, sections: tuple[MachSection, ...]) -> Iterator[Leaf]:
    """Yield the leaves of one architecture, of which the names begin with what it is `said` to be."""
    claims = [
        Piece(start=each.offset, end=each.offset + each.size_bytes, owner=each) for each in sections if not each.zeroed
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


NO_MAP: Final = "there is no link map: object files and operators are not known"
STRIPPED: Final = "the library is stripped: without a link map its code is one part for each section"
LINKED: Final = "are code of LTO: its object files are not known, components are guessed from the symbols' names"


def account(path: Path, link_map: Path | None, index: UnitIndex | None = None) -> Accounting:
    """Return the leaves of a shared library; their sizes sum to the file's, whatever the file or the map says.

    Without a map the leaves are the library's own symbols, or its sections when it is stripped, as those of a Mach-O
    library always are. By an index of units, operators have the files that serve them alone.
    """
    data = read_bytes(path)
    if is_macho(data):
        return account_macho(data, str(path))
    outputs = () if link_map is None else read_link_map(link_map)

    def read(elf: ELFFile) -> Accounting:
        if outputs:
            require_match(sections_in_memory(elf), outputs, str(link_map))
        return _account(elf, len(data), outputs, index)

    return with_elf_bytes(data, path, read)


def _account(elf: ELFFile, file_bytes: int, outputs: tuple[MapOutput, ...], index: UnitIndex | None) -> Accounting:
    symbols: Symbols = {} if outputs else read_symbols(elf)
    by_place = {(output.name, output.address): output for output in outputs}
    found = [leaf for part, piece in file_pieces(elf, file_bytes) for leaf in _leaves(part, piece, by_place, symbols)]
    leaves = with_operators(found, registered_operators(found), index)
    return Accounting(
        file_bytes=file_bytes,
        zeroed_bytes=zeroed_bytes(elf),
        leaves=leaves,
        mapped=bool(outputs),
        notes=tuple(_notes(outputs, symbols, leaves)),
    )


def _leaves(
    part: SizePart, piece: Piece[SizePart], outputs: Mapping[tuple[str, int], MapOutput], symbols: Symbols
) -> Iterator[Leaf]:
    start = (part.address or 0) + piece.start - part.offset
    end = start + piece.size_bytes
    output = None if part.address is None else outputs.get((part.name, part.address))
    if output and output.inputs:
        yield from mapped_leaves(output, start, end)
    elif part.number in symbols:
        yield from symbol_leaves(symbols[part.number], part, start, end)
    else:
        yield Leaf(component=part.content, section=part.name, symbol=part.name, size_bytes=piece.size_bytes)


def _notes(outputs: tuple[MapOutput, ...], symbols: Symbols, leaves: tuple[Leaf, ...]) -> Iterator[str]:
    if not outputs:
        yield NO_MAP
        yield "components are guessed from the symbols' names" if symbols else STRIPPED
    linked = sum(leaf.size_bytes for leaf in leaves if LINK_TIME.fullmatch(leaf.file))
    if linked:
        yield f"{counted(linked, 'byte')} {LINKED}"
