"""Rules for what the libraries of an AAR need: of Android at the promised API level, and of each other."""

import re
from collections.abc import Iterator
from typing import Final

from ortrim.core.aar import AarFacts
from ortrim.core.android import ABI_FACTS, NativeLibrary, SystemApi, UndefinedSymbol
from ortrim.pins.android_api import system_api
from ortrim.verify.android.rules import Promise, Rule
from ortrim.verify.rules import Breach, some

OTHER_SYSTEMS: Final = re.compile(r"lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so\.\d+|ld-linux.*|ld-musl.*|libc\.musl.*")
"""What Linux's C and C++ libraries are called; Bionic's names have no number."""


def _other_systems(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    for library in aar.libraries:
        names = [name for name in library.facts.needed if OTHER_SYSTEMS.fullmatch(name)]
        if names:
            yield Breach(where=library.path, why=f"it needs {some(names)}")


def _unknown_libraries(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    for library, api in _judged(aar):
        beside = {name for each in aar.of_abi(library.abi) for name in (each.name, each.facts.soname)}
        names = [
            name
            for name in library.facts.needed
            if name not in api.libraries and name not in beside and not OTHER_SYSTEMS.fullmatch(name)
        ]
        if names:
            yield Breach(where=library.path, why=f"it needs {some(names)}")


def _newer_libraries(aar: AarFacts, promise: Promise) -> Iterator[Breach]:
    for library, api in _judged(aar):
        known = (api.libraries[name] for name in library.facts.needed if name in api.libraries)
        names = [f"{each.name} (API level {each.since})" for each in known if each.since > promise.api_level]
        if names:
            yield Breach(where=library.path, why=f"it needs {some(names)}")


def _unknown_symbols(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    for library, api in _judged(aar):
        names = [_spelled(symbol) for symbol in _foreign(aar, library) if not _is_known(symbol, library, api)]
        if names:
            yield Breach(where=library.path, why=some(names))


def _newer_symbols(aar: AarFacts, promise: Promise) -> Iterator[Breach]:
    for library, api in _judged(aar):
        levels = ((symbol, _level(symbol, library, api)) for symbol in _foreign(aar, library))
        names = [f"{symbol.name} (API level {level})" for symbol, level in levels if level > promise.api_level]
        if names:
            yield Breach(where=library.path, why=some(names))


def _wrong_names(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    # Without a soname a library is found by its file's name when an app loads it, but not when another needs it.
    for library in aar.libraries:
        soname = library.facts.soname
        needed = any(library.name in other.facts.needed for other in aar.of_abi(library.abi))
        if soname and soname != library.name:
            yield Breach(where=library.path, why=f"it calls itself {soname}")
        elif not soname and needed:
            yield Breach(where=library.path, why="it has no soname, and other libraries need it")


def _judged(aar: AarFacts) -> Iterator[tuple[NativeLibrary, SystemApi]]:
    """Yield the libraries of known ABIs, each with what Android offers it."""
    for library in aar.libraries:
        if library.abi in ABI_FACTS:
            yield library, system_api(library.abi)


def _foreign(aar: AarFacts, library: NativeLibrary) -> Iterator[UndefinedSymbol]:
    """Yield the symbols that have to come from Android: neither weak nor of a library beside this one."""
    beside = {name for other in aar.of_abi(library.abi) if other is not library for name in other.facts.exported}
    return (symbol for symbol in library.undefined if not symbol.weak and symbol.name not in beside)


def _is_known(symbol: UndefinedSymbol, library: NativeLibrary, api: SystemApi) -> bool:
    """Whether a needed library has the symbol; of one whose names are not all known, whether it may have it."""
    known_version = not symbol.version or symbol.version in api.versions
    needed = [api.libraries[name] for name in library.facts.needed if name in api.libraries]
    return any(
        symbol.name.startswith(each.begins) if each.symbols is None else known_version and symbol.name in each.symbols
        for each in needed
    )


def _level(symbol: UndefinedSymbol, library: NativeLibrary, api: SystemApi) -> int:
    """Return the API level that has a symbol in the version that is asked for; 0 when nothing is known of it."""
    needed = (api.libraries[name].symbols for name in library.facts.needed if name in api.libraries)
    levels = (symbols[symbol.name] for symbols in needed if symbols is not None and symbol.name in symbols)
    return max(min(levels, default=0), api.versions.get(symbol.version, 0))


def _spelled(symbol: UndefinedSymbol) -> str:
    return f"{symbol.name}@{symbol.version}" if symbol.version else symbol.name


LINK_RULES: Final = (
    Rule(
        reference="not-for-android",
        name="no libraries of Linux",
        what="the library was built for Linux, not for Android: no Android has the C library that it needs",
        hint="build the target android-<abi>; a linux-<architecture> package does not run on Android",
        search=_other_systems,
    ),
    Rule(
        reference="needed-not-public",
        name="public libraries only",
        what="the library needs another that neither the AAR nor Android offers to apps",
        hint="put it into the same jni folder (as libc++_shared.so), or link it statically",
        search=_unknown_libraries,
    ),
    Rule(
        reference="needed-too-new",
        name="libraries of the API level",
        what="the library needs another that the oldest Android promised does not have",
        hint="raise the API level of the buildspec, or open that library with dlopen",
        search=_newer_libraries,
    ),
    Rule(
        reference="symbol-not-in-android",
        name="symbols that Android has",
        what="the library needs names that no library it asks for has",
        hint="link with -Wl,--no-undefined against the NDK's libraries, which names what is missing",
        search=_unknown_symbols,
    ),
    Rule(
        reference="symbol-too-new",
        name="symbols of the API level",
        what="the library needs names that the oldest Android promised does not have",
        hint="build it with the API level of the buildspec, or raise that",
        search=_newer_symbols,
    ),
    Rule(
        reference="soname-differs",
        name="soname",
        what="the loader would not find the library under the name that others need it by",
        hint="link with -Wl,-soname,<name of the file>; Android packages no versioned names",
        search=_wrong_names,
    ),
)
