"""Properties without which an AAR is not fit to ship, each with a code of its own."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ortrim.base.console import counted
from ortrim.binaries.android import ABI_FACTS, PAGE_BYTES, NativeLibrary, SystemApi, UndefinedSymbol, system_api
from ortrim.package.aar_contents import OWN_MANIFEST, AarFacts
from ortrim.platforms.android.arguments import SHARED_STL
from ortrim.platforms.android.jni import BINDING
from ortrim.verify.gates import Breaches, RuleBook, some


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What an AAR was made to keep: the least API level, its ABIs, the page size.

    Without `abis` those that it has are right. With `whole_relro` the RELRO part of each library that ortrim links ends
    where a page does. Without `java` it has no Java API.
    """

    api_level: int
    abis: tuple[str, ...] = ()
    page_bytes: int = PAGE_BYTES
    whole_relro: bool = False
    java: bool = True


Search = Callable[[AarFacts, Promise], Breaches]


def _libraries(aar: AarFacts) -> str:
    return f"in {counted(len(aar.libraries), 'file')} of {counted(len(aar.abis), 'ABI')}"


AAR: Final = RuleBook[AarFacts, Promise]("aar", _libraries)
_rule = AAR.rule


def in_each_library(find: Callable[[NativeLibrary, Promise], str]) -> Search:
    """Return a search that asks each library; `find` returns what is wrong with one, empty when nothing is."""
    return lambda aar, promise: ((library.path, find(library, promise)) for library in aar.libraries)


def in_each_known(find: Callable[[AarFacts, NativeLibrary, SystemApi, Promise], str]) -> Search:
    """Return a search that asks each library of a known ABI, with what Android offers it."""
    return lambda aar, promise: (
        (library.path, find(aar, library, system_api(library.abi), promise))
        for library in aar.libraries
        if library.abi in ABI_FACTS
    )


def _unaligned_segments(library: NativeLibrary, promise: Promise) -> str:
    # The kernel maps whole pages, so that addresses and offsets agree modulo the page size.
    page = promise.page_bytes
    for segment in library.segments:
        if segment.alignment < page or segment.alignment % page:
            return f"a PT_LOAD at {segment.address:#x} is aligned to {segment.alignment} bytes"
        if (segment.address - segment.offset) % page:
            return f"a PT_LOAD at {segment.address:#x} lies at {segment.offset:#x} in the file, elsewhere in a page"
    return "" if library.segments else "it has no PT_LOAD at all"


def _least_alignment(aar: AarFacts) -> str:
    least = min((segment.alignment for library in aar.libraries for segment in library.segments), default=0)
    return f"all to {least:,} bytes or more"


def _covered_data(library: NativeLibrary, promise: Promise) -> str:
    """Tell what becomes read-only with RELRO: the loader protects whole pages, those in which it begins and ends too.

    Linkers let RELRO end at 4 KB and begin what stays writable on the next page of the size they were told, which is
    well, or right behind, which is not: https://github.com/ericsink/SQLitePCL.raw/issues/676. Android's own check
    (AOSP's `elf_policy.cpp`) is the same in other words: RELRO begins and ends with a page or with its segment.
    """
    if library.relro is None:
        return ""
    page, start, end = promise.page_bytes, library.relro.address, library.relro.end
    first_page, protected = start // page * page, -(-end // page) * page
    for segment in library.segments:
        if segment.writable and segment.address < start and segment.end > first_page:
            first = max(first_page, segment.address)
            return f"RELRO begins at {start:#x}, and {first:#x} in the same page must stay writable"
        if segment.writable and segment.address < protected and segment.end > end:
            first = max(end, segment.address)
            return f"RELRO ends at {end:#x}, and {first:#x} in the same page must stay writable"
    return ""


def _relro_in_mid_page(library: NativeLibrary, promise: Promise) -> str:
    """Tell where RELRO ends, unless with a page; the NDK's own C++ library comes as it is."""
    if library.relro is None or library.name == SHARED_STL or library.relro.end % promise.page_bytes == 0:
        return ""
    return f"RELRO ends at {library.relro.end:#x}"


def _newer_api(library: NativeLibrary, promise: Promise) -> str:
    level = library.api_level
    return f"it was built for API level {level}" if level is not None and level > promise.api_level else ""


def _newer_loader(library: NativeLibrary, promise: Promise) -> str:
    needs = [f"{name} (API level {level})" for name, level in library.loader_features if level > promise.api_level]
    return f"it needs {', '.join(needs)}" if needs else ""


ELF_RULES: Final = (
    _rule(
        "abi-unknown",
        in_each_library(
            lambda library, _: "" if library.abi in ABI_FACTS else f"the NDK's ABIs are {', '.join(ABI_FACTS)}"
        ),
    ),
    _rule(
        "abi-mismatch",
        in_each_library(
            lambda library, _: "" if library.built_for == library.abi else f"it is for {library.built_for}"
        ),
    ),
    _rule("segments-not-page-aligned", in_each_library(_unaligned_segments), told=_least_alignment),
    _rule("relro-covers-data", in_each_library(_covered_data)),
    _rule(
        "relro-not-page-aligned",
        in_each_library(_relro_in_mid_page),
        doubt=lambda _, promise: (
            "" if promise.whole_relro else "checked only for AARs of ortrim: Android does not require it"
        ),
    ),
    _rule(
        "stack-executable",
        in_each_library(
            lambda library, _: "PT_GNU_STACK is executable or absent" if library.facts.executable_stack else ""
        ),
    ),
    _rule(
        "text-relocations",
        in_each_library(lambda library, _: "DT_TEXTREL is set" if library.facts.text_relocations else ""),
    ),
    _rule(
        "not-stripped", in_each_library(lambda library, _: "" if library.facts.stripped else "it has a symbol table")
    ),
    _rule(
        "build-id-missing",
        in_each_library(lambda library, _: "" if library.build_id else "it has no NT_GNU_BUILD_ID note"),
    ),
    _rule("built-for-newer-api", in_each_library(_newer_api)),
    _rule("loader-too-old", in_each_library(_newer_loader)),
    _rule("source-path", in_each_library(lambda library, _: some(library.source_paths, 2))),
)


OTHER_SYSTEMS: Final = re.compile(r"lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so\.\d+|ld-linux.*|ld-musl.*|libc\.musl.*")
"""What Linux's C and C++ libraries are called; Bionic's names have no number."""


def _needs(names: Sequence[str]) -> str:
    return f"it needs {some(names)}" if names else ""


def _unknown_libraries(aar: AarFacts, library: NativeLibrary, api: SystemApi, _promise: Promise) -> str:
    beside = {name for each in aar.of_abi(library.abi) for name in (each.name, each.facts.soname)}
    known = beside | api.libraries.keys()
    return _needs([name for name in library.facts.needed if name not in known and not OTHER_SYSTEMS.fullmatch(name)])


def _newer_libraries(_aar: AarFacts, library: NativeLibrary, api: SystemApi, promise: Promise) -> str:
    known = (api.libraries[name] for name in library.facts.needed if name in api.libraries)
    return _needs([f"{each.name} (API level {each.since})" for each in known if each.since > promise.api_level])


def _unknown_symbols(aar: AarFacts, library: NativeLibrary, api: SystemApi, _promise: Promise) -> str:
    unknown = (symbol for symbol in _foreign(aar, library) if not _is_known(symbol, library, api))
    return some(f"{symbol.name}@{symbol.version}" if symbol.version else symbol.name for symbol in unknown)


def _newer_symbols(aar: AarFacts, library: NativeLibrary, api: SystemApi, promise: Promise) -> str:
    levels = ((symbol, _level(symbol, library, api)) for symbol in _foreign(aar, library))
    return some(f"{symbol.name} (API level {level})" for symbol, level in levels if level > promise.api_level)


def _wrong_names(aar: AarFacts, _promise: Promise) -> Breaches:
    # Without a soname a library is found by its file's name when an app loads it, but not when another needs it.
    for library in aar.libraries:
        soname = library.facts.soname
        needed = any(library.name in other.facts.needed for other in aar.of_abi(library.abi))
        if soname and soname != library.name:
            yield library.path, f"it calls itself {soname}"
        elif not soname and needed:
            yield library.path, "it has no soname, and other libraries need it"


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


LINK_RULES: Final = (
    _rule(
        "not-for-android",
        in_each_library(
            lambda library, _: _needs([name for name in library.facts.needed if OTHER_SYSTEMS.fullmatch(name)])
        ),
    ),
    _rule("needed-not-public", in_each_known(_unknown_libraries)),
    _rule("needed-too-new", in_each_known(_newer_libraries)),
    _rule("symbol-not-in-android", in_each_known(_unknown_symbols)),
    _rule("symbol-too-new", in_each_known(_newer_symbols)),
    _rule("soname-differs", _wrong_names),
)


JNI_PREFIX: Final = "Java_ai_onnxruntime_"
JAVA_PACKAGE: Final = "ai.onnxruntime."
KEEPS_ALL: Final = re.compile(
    r"^-keep(,includedescriptorclasses)?\s+class\s+ai\.onnxruntime\.\*\*\s*\{\s*\*;\s*\}", re.MULTILINE
)
"""With all members, which R8's full mode else removes, and without leave to shrink or rename anything."""
NEWEST_CLASSES: Final = 61
"""Java 17's, which the D8 of Android Gradle Plugin 8 reads."""
ANDROID_MANIFEST: Final = "AndroidManifest.xml"


def _missing_abis(aar: AarFacts, promise: Promise) -> Breaches:
    missing = sorted(set(promise.abis) - set(aar.abis))
    if missing or not aar.libraries:
        yield "jni", f"there is no library for {some(missing) or 'any ABI'}"


def _uneven_abis(aar: AarFacts, _promise: Promise) -> Breaches:
    everything = {library.name for library in aar.libraries}
    for abi in aar.abis:
        if missing := sorted(everything - {library.name for library in aar.of_abi(abi)}):
            yield f"jni/{abi}", f"it lacks {some(missing)}, which other ABIs have"


def _missing_exports(aar: AarFacts, _promise: Promise) -> Breaches:
    for abi in aar.abis:
        binding = next((library for library in aar.of_abi(abi) if library.name == BINDING), None)
        if binding is None:
            yield f"jni/{abi}", f"there is no {BINDING}"
        elif not any(name.startswith(JNI_PREFIX) for name in binding.facts.exported):
            yield binding.path, f"it exports no {JNI_PREFIX}*"


def _unbound_methods(aar: AarFacts, _promise: Promise) -> Breaches:
    natives = aar.classes.native_methods if aar.classes else ()
    methods = [each for each in natives if each.method.startswith(JAVA_PACKAGE)]
    for abi in aar.abis:
        exported = {name for library in aar.of_abi(abi) for name in library.facts.exported}
        unbound = [each.method for each in methods if not exported & {each.short_symbol, each.long_symbol}]
        if unbound:
            yield f"jni/{abi}", f"no library has {some(unbound)}"


def _missing_rules(aar: AarFacts, _promise: Promise) -> Breaches:
    if not KEEPS_ALL.search("\n".join(aar.keep_rules)):
        yield "proguard.txt", "no -keep rule for ai.onnxruntime.** and all members"


def _newer_classes(aar: AarFacts, _promise: Promise) -> Breaches:
    if aar.classes is not None and aar.classes.class_version > NEWEST_CLASSES:
        yield "classes.jar", f"class files of version {aar.classes.class_version}"


def _other_api_level(aar: AarFacts, promise: Promise) -> Breaches:
    if aar.minimum_api != promise.api_level:
        yield ANDROID_MANIFEST, f"minSdkVersion is {aar.minimum_api}, promised is {promise.api_level}"


def _extraction(aar: AarFacts, _promise: Promise) -> Breaches:
    value = dict(aar.attributes).get("extractNativeLibs")
    if value is not None:
        yield ANDROID_MANIFEST, f"android:extractNativeLibs is {value}"


def _contradictions(aar: AarFacts, promise: Promise) -> Breaches:
    manifest = aar.manifest
    assert manifest is not None
    said = {(each.abi, name): build_id for each in manifest.abis for name, build_id in each.build_ids}
    found = {(library.abi, library.name): library.build_id for library in aar.libraries}
    if manifest.api_level != promise.api_level:
        yield OWN_MANIFEST, f"API level {manifest.api_level}, promised is {promise.api_level}"
    if manifest.page_bytes != promise.page_bytes:
        yield OWN_MANIFEST, f"pages of {manifest.page_bytes} bytes, promised are {promise.page_bytes}"
    if different := sorted("/".join(key) for key in said.keys() | found.keys() if said.get(key) != found.get(key)):
        yield OWN_MANIFEST, f"it describes other libraries: {some(different)}"
    if aar.version and manifest.ort_version != aar.version:
        yield OWN_MANIFEST, f"ONNX Runtime {manifest.ort_version}, the library says {aar.version}"


def _without_java(_aar: AarFacts, promise: Promise) -> str:
    return "" if promise.java else "the AAR has no Java API: no JDK, or android.java = false"


def _without_natives(aar: AarFacts, promise: Promise) -> str:
    reason = "" if aar.classes and aar.classes.native_methods else "no class has a native method"
    return _without_java(aar, promise) or reason


PACKAGE_RULES: Final = (
    _rule("abi-missing", _missing_abis, told=lambda aar: ", ".join(aar.abis)),
    _rule("abis-differ", _uneven_abis, told=lambda aar: ", ".join(sorted({library.name for library in aar.libraries}))),
    _rule(
        "jni-exports-missing",
        _missing_exports,
        told=lambda aar: f"{BINDING} for {counted(len(aar.abis), 'ABI')}",
        doubt=_without_natives,
    ),
    _rule(
        "native-method-unbound",
        _unbound_methods,
        told=lambda aar: counted(len(aar.classes.native_methods) if aar.classes else 0, "native method"),
        doubt=_without_natives,
    ),
    _rule(
        "keep-rules-missing", _missing_rules, told=lambda _: "proguard.txt keeps ai.onnxruntime.**", doubt=_without_java
    ),
    _rule(
        "class-version-too-new",
        _newer_classes,
        told=lambda aar: f"version {aar.classes.class_version}" if aar.classes and aar.classes.count else "no classes",
    ),
    _rule("minimum-api-differs", _other_api_level, told=lambda aar: f"minSdkVersion {aar.minimum_api}"),
    _rule("extraction-set", _extraction, told=lambda _: f"{ANDROID_MANIFEST} does not say"),
    _rule(
        "manifest-contradicts",
        _contradictions,
        told=lambda _: "version, API level, page size, ABIs and build-ids",
        doubt=lambda aar, _promise: "" if aar.manifest else "ortrim did not make this AAR",
    ),
)


RULES = AAR.rules = (*PACKAGE_RULES, *ELF_RULES, *LINK_RULES)
check_aar, broken_rules, require_sound_aar = AAR.check, AAR.broken, AAR.require
OLDEST_API: Final = 21
"""What an AAR that does not say it is judged by: the oldest that NDKs since r26 build for."""


def own_promise(aar: AarFacts) -> Promise:
    """Return what an AAR of any origin promises by itself: the API level of its manifest, its own ABIs, a Java API."""
    level = OLDEST_API if aar.minimum_api is None else aar.minimum_api
    return Promise(api_level=level, java=aar.manifest is None or aar.manifest.java)
