"""MLAS's table of the processor: which kernels it names, and which sources read each of its entries. Pure.

Constructors put the best kernels for the processor into the entries of `struct MLAS_PLATFORM`, and
so names every kernel there is; the sources that compute read single entries. Upstream: core/mlas/lib/{mlasi.h,
platform.cpp}.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

WIDE_VECTORS: Final = "wide_vectors.cc"
WIDE_BLOCKS: Final = "wide_blocks.cc"
WIDE_SOURCES: Final = (WIDE_VECTORS, WIDE_BLOCKS)
"""Ours in `data/cmake`, for the kernels that minimal builds go without."""
CONSTRUCTORS: Final = ("platform.cpp", *WIDE_SOURCES)
"""What fills the table: upstream's, and ours."""
DECLARATIONS: Final = "mlasi.h"
STRUCTURE: Final = re.compile(r"^struct MLAS_PLATFORM \{.*?^\};", re.DOTALL | re.MULTILINE)
ASSIGNED: Final = re.compile(r"(?:this->|table\.)(\w+)(?:\[\w+\])?\s*=\s*&?([A-Za-z_]\w*)")
DEFAULT: Final = re.compile(r"(\w+)\{&(\w+)\}")
INCLUDED: Final = re.compile(r'^\s*#\s*include\s*"(?:[^"\n]*/)?([^"/\n]+)"', re.MULTILINE)
WORD: Final = re.compile(r"\w+")
CALLED: Final = re.compile(r"[.>](\w+)\s*(?:->|\()")
"""How the constructor's own source would use a kernel; it may compare entries, for which an address is enough."""
IGNORED: Final = re.compile(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", re.DOTALL | re.MULTILINE)
"""Comments, and the lines of the preprocessor: what stands between these counts, whichever way it decides."""
GETTER: Final = re.compile(
    r"\b(\w+)\(\s*(?:void)?\s*\)\s*\{\s*return\s+GetMlasPlatform\(\)\.(\w+);\s*(?:return\s+\w+;\s*)?\}"
)
"""A function that does nothing but return an entry, or a number where there is none."""


@dataclass(frozen=True, kw_only=True)
class KernelTable:
    """For each kernel, by its plain name, the entries it may stand in; for each entry, the sources that may use it.

    Sources go by their base names. `getters` are functions, by their plain names, that do nothing but return an entry
    in which no kernel stands.
    """

    entries: Mapping[str, frozenset[str]]
    readers: Mapping[str, frozenset[str]]
    getters: frozenset[str] = frozenset()

    def only_gets(self, symbol: str) -> bool:
        """Whether a function, mangled or not, is one of the `getters`, and none that merely has such a name inside."""
        return any(symbol in (name, f"_Z{len(name)}{name}v", f"_ZL{len(name)}{name}v") for name in self.getters)

    def users(self, symbol: str) -> frozenset[str] | None:
        """Return the sources that may use a kernel, mangled or not, by way of the table; None for what is no kernel."""
        named = [entries for kernel, entries in self.entries.items() if symbol == kernel or _mangles(symbol, kernel)]
        if not named:
            return None
        return frozenset[str]().union(*(self.readers[entry] for entries in named for entry in entries))


def kernel_table(sources: Mapping[str, str], superseded: Collection[str] = ()) -> KernelTable:
    """Read the table out of the texts of MLAS's sources and headers, by base name.

    A source uses an entry when it, or a header that it includes by whatever way, has the entry's name. Kernels that are
    `superseded` stand in no entry. Where the table is not found, there are no kernels in it.
    """
    constructors = {name: sources[name] for name in CONSTRUCTORS if name in sources}
    declarations = sources.get(DECLARATIONS, "")
    structure = STRUCTURE.search(declarations)
    if structure is None:
        return KernelTable(entries={}, readers={})
    entries: dict[str, frozenset[str]] = {}
    assigned = [found for text in constructors.values() for found in ASSIGNED.findall(text)]
    for entry, kernel in (*assigned, *DEFAULT.findall(structure[0])):
        entries[kernel] = entries.get(kernel, frozenset()) | (set() if kernel in superseded else {entry})
    words = {name: frozenset(WORD.findall(text)) for name, text in sources.items()}
    words[DECLARATIONS] = frozenset(WORD.findall(declarations.replace(structure[0], "")))
    words |= {name: frozenset(CALLED.findall(text)) for name, text in constructors.items()}
    seen = {name: _with_headers(name, sources) for name in sources}
    every = frozenset[str]().union(*entries.values())
    readers = {entry: frozenset(name for name in sources if _reads(entry, seen[name], words)) for entry in every}
    return KernelTable(entries=entries, readers=readers, getters=_getters(sources.values(), every))


def _getters(texts: Iterable[str], kernels: Collection[str]) -> frozenset[str]:
    """Return the functions that return an entry which is none of those for kernels; none that is written twice."""
    found = [getter for text in texts for getter in GETTER.findall(IGNORED.sub("", text))]
    names = [name for name, _ in found]
    return frozenset(name for name, entry in found if entry not in kernels and names.count(name) == 1)


def _mangles(symbol: str, kernel: str) -> bool:
    return symbol.startswith("_Z") and f"{len(kernel)}{kernel}" in symbol


def _reads(entry: str, files: Iterable[str], words: Mapping[str, frozenset[str]]) -> bool:
    return any(entry in words[file] for file in files)


def _with_headers(name: str, sources: Mapping[str, str]) -> frozenset[str]:
    """Return a file and all of the given ones that it includes, by whatever way."""
    seen, pending = {name}, [name]
    while pending:
        fresh = {file for file in INCLUDED.findall(sources[pending.pop()]) if file in sources} - seen
        seen |= fresh
        pending.extend(fresh)
    return frozenset(seen)
