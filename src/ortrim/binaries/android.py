"""Android as packages see it: ABIs, what libraries and classes are made of, and what apps may use."""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ortrim.binaries.elf import LibraryFacts
from ortrim.pins.shipped import shipped_text

PAGE_BYTES: Final = 16_384
"""The larger of the two page sizes that Android runs with; what is aligned to it loads with either."""


@dataclass(frozen=True, kw_only=True)
class Abi:
    """An ABI of the NDK: its name, the ELF machine and class of its libraries, and the name that bionic gives it."""

    name: str
    machine: str
    bits: int
    bionic: str


ABI_FACTS: Final = {
    abi.name: abi
    for abi in (
        Abi(name="arm64-v8a", machine="EM_AARCH64", bits=64, bionic="arm64"),
        Abi(name="armeabi-v7a", machine="EM_ARM", bits=32, bionic="arm"),
        Abi(name="x86_64", machine="EM_X86_64", bits=64, bionic="x86_64"),
        Abi(name="x86", machine="EM_386", bits=32, bionic="x86"),
    )
}


@dataclass(frozen=True, kw_only=True)
class SystemLibrary:
    """A library that apps may use from an API level on; `symbols` have levels, None when only `begins` is known."""

    name: str
    since: int
    symbols: dict[str, int] | None
    begins: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SystemApi:
    """What apps of one ABI may use: libraries by soname, and the API level of each version of a symbol."""

    libraries: dict[str, SystemLibrary]
    versions: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A part of a library that is mapped; addresses and sizes in bytes."""

    offset: int
    address: int
    file_bytes: int
    memory_bytes: int
    alignment: int
    writable: bool

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.memory_bytes


@dataclass(frozen=True, kw_only=True)
class UndefinedSymbol:
    """A name that a library needs of others; `version` is the required one, empty for any."""

    name: str
    version: str
    weak: bool


@dataclass(frozen=True, kw_only=True)
class NativeLibrary:
    """A library of an AAR, in the folder of an ABI.

    `compressed_bytes` is what it takes in the AAR, `download_bytes` what a download grows by. `built_for` is the ABI of
    its ELF machine, or the machine's own name. `loader_features` come with the API level whose loader knows them.
    `api_level` and `ndk` are of the NDK's note; None and empty without. `version` is that of its exported symbols.
    """

    path: str
    abi: str
    size_bytes: int
    compressed_bytes: int
    download_bytes: int
    built_for: str
    facts: LibraryFacts
    segments: tuple[Segment, ...]
    relro: Segment | None
    undefined: tuple[UndefinedSymbol, ...]
    loader_features: tuple[tuple[str, int], ...]
    build_id: str
    api_level: int | None
    ndk: str
    version: str
    source_paths: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file's name, by which apps load it."""
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class NativeMethod:
    """A method that Java code leaves to a library: the short and the long symbol that the virtual machine looks for."""

    method: str
    short_symbol: str
    long_symbol: str


@dataclass(frozen=True, kw_only=True)
class JavaClasses:
    """The classes of an AAR: how many, the newest class file version (52 is Java 8's), and their native methods."""

    count: int
    class_version: int
    size_bytes: int
    compressed_bytes: int
    native_methods: tuple[NativeMethod, ...]


LIBRARIES: Final = "android/libraries.toml"
API_SYMBOLS: Final = "android/symbols.toml"


@cache
def system_api(abi: str) -> SystemApi:
    """Return what Android offers to apps of an ABI, whatever the API level. Raises KeyError for an ABI that is none."""
    about, symbols = _table(LIBRARIES), _table(API_SYMBOLS)
    libraries = {
        name: SystemLibrary(
            name=name,
            since=entry["since"],
            symbols=_symbols(symbols[name], ABI_FACTS[abi]) if entry.get("exact") else None,
            begins=tuple(entry.get("begins", ())),
        )
        for name, entry in about["libraries"].items()
    }
    return SystemApi(libraries=libraries, versions=about["versions"])


def _symbols(levels: dict[str, dict[str, str]], abi: Abi) -> dict[str, int]:
    """Return the symbols of one ABI with the first level that has each."""
    keys = ("all", str(abi.bits), abi.bionic)
    found: dict[str, int] = {}
    for level in sorted(levels, key=int):
        for name in (name for key in keys for name in levels[level].get(key, "").split()):
            found.setdefault(name, int(level))
    return found


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(shipped_text(name))
