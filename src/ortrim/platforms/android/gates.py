"""Properties without which an AAR is not fit to ship, each with a code of its own.

- Rules for an AAR as a whole: its ABIs, its classes, its rules for R8, what its manifests say, and its size.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ortrim.base.console import counted
from ortrim.package.aar_contents import AarFacts, AarManifest
from ortrim.parity.measurements import Gate
from ortrim.platforms.android.jni import BINDING
from ortrim.platforms.android.rules import ELF_RULES, LINK_RULES, AndroidRule, Promise
from ortrim.verify.gates import Breach, broken, judged, require_kept, some

JNI_PREFIX: Final = "Java_ai_onnxruntime_"
JAVA_PACKAGE: Final = "ai.onnxruntime."
KEEPS_ALL: Final = re.compile(
    r"^-keep(,includedescriptorclasses)?\s+class\s+ai\.onnxruntime\.\*\*\s*\{\s*\*;\s*\}", re.MULTILINE
)
"""With all members, which R8's full mode else removes, and without leave to shrink or rename anything."""
NEWEST_CLASSES: Final = 61
"""Java 17's, which the D8 of Android Gradle Plugin 8 reads."""
ANDROID_MANIFEST: Final = "AndroidManifest.xml"
OWN_MANIFEST: Final = "META-INF/ortrim/manifest.json"


def _missing_abis(aar: AarFacts, promise: Promise) -> Iterator[Breach]:
    missing = sorted(set(promise.abis) - set(aar.abis))
    if missing or not aar.libraries:
        yield Breach(where="jni", why=f"there is no library for {some(missing) or 'any ABI'}")


def _uneven_abis(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    everything = {library.name for library in aar.libraries}
    for abi in aar.abis:
        missing = sorted(everything - {library.name for library in aar.of_abi(abi)})
        if missing:
            yield Breach(where=f"jni/{abi}", why=f"it lacks {some(missing)}, which other ABIs have")


def _missing_exports(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    for abi in aar.abis:
        binding = next((library for library in aar.of_abi(abi) if library.name == BINDING), None)
        if binding is None:
            yield Breach(where=f"jni/{abi}", why=f"there is no {BINDING}")
        elif not any(name.startswith(JNI_PREFIX) for name in binding.facts.exported):
            yield Breach(where=binding.path, why=f"it exports no {JNI_PREFIX}*")


def _unbound_methods(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    natives = aar.classes.native_methods if aar.classes else ()
    methods = [each for each in natives if each.method.startswith(JAVA_PACKAGE)]
    for abi in aar.abis:
        exported = {name for library in aar.of_abi(abi) for name in library.facts.exported}
        unbound = [each.method for each in methods if not exported & {each.short_symbol, each.long_symbol}]
        if unbound:
            yield Breach(where=f"jni/{abi}", why=f"no library has {some(unbound)}")


def _missing_rules(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    if not KEEPS_ALL.search("\n".join(aar.keep_rules)):
        yield Breach(where="proguard.txt", why="no -keep rule for ai.onnxruntime.** and all members")


def _newer_classes(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    if aar.classes is not None and aar.classes.class_version > NEWEST_CLASSES:
        yield Breach(where="classes.jar", why=f"class files of version {aar.classes.class_version}")


def _other_api_level(aar: AarFacts, promise: Promise) -> Iterator[Breach]:
    if aar.minimum_api != promise.api_level:
        yield Breach(where=ANDROID_MANIFEST, why=f"minSdkVersion is {aar.minimum_api}, promised is {promise.api_level}")


def _extraction(aar: AarFacts, _promise: Promise) -> Iterator[Breach]:
    value = dict(aar.attributes).get("extractNativeLibs")
    if value is not None:
        yield Breach(where=ANDROID_MANIFEST, why=f"android:extractNativeLibs is {value}")


def _contradictions(aar: AarFacts, promise: Promise) -> Iterator[Breach]:
    assert aar.manifest is not None
    yield from (Breach(where=OWN_MANIFEST, why=why) for why in _differences(aar, aar.manifest, promise))


def _differences(aar: AarFacts, manifest: AarManifest, promise: Promise) -> Iterator[str]:
    said = {(each.abi, name): build_id for each in manifest.abis for name, build_id in each.build_ids}
    found = {(library.abi, library.name): library.build_id for library in aar.libraries}
    if manifest.api_level != promise.api_level:
        yield f"API level {manifest.api_level}, promised is {promise.api_level}"
    if manifest.page_bytes != promise.page_bytes:
        yield f"pages of {manifest.page_bytes} bytes, promised are {promise.page_bytes}"
    if different := sorted("/".join(key) for key in said.keys() | found.keys() if said.get(key) != found.get(key)):
        yield f"it describes other libraries: {some(different)}"
    if aar.version and manifest.ort_version != aar.version:
        yield f"ONNX Runtime {manifest.ort_version}, the library says {aar.version}"


def _without_java(_aar: AarFacts, promise: Promise) -> str:
    return "" if promise.java else "the AAR has no Java API: no JDK, or android.java = false"


def _without_natives(aar: AarFacts, promise: Promise) -> str:
    reason = "" if aar.classes and aar.classes.native_methods else "no class has a native method"
    return _without_java(aar, promise) or reason


PACKAGE_RULES: Final = (
    AndroidRule(
        code="abi-missing",
        name="all ABIs",
        what="the AAR lacks an ABI",
        hint="build all android targets of the buildspec before the AAR",
        search=_missing_abis,
        told=lambda aar: ", ".join(aar.abis),
    ),
    AndroidRule(
        code="abis-differ",
        name="same libraries in every ABI",
        what="an app would crash on the devices of this ABI",
        hint="build the ABIs with the same options",
        search=_uneven_abis,
        told=lambda aar: ", ".join(sorted({library.name for library in aar.libraries})),
    ),
    AndroidRule(
        code="jni-exports-missing",
        name="JNI library",
        what="the Java API would find none of its native methods",
        hint=f"build {BINDING} from java/src/main/native, with JNIEXPORT visible",
        search=_missing_exports,
        doubt=_without_natives,
        told=lambda aar: f"{BINDING} for {counted(len(aar.abis), 'ABI')}",
    ),
    AndroidRule(
        code="native-method-unbound",
        name="native methods are bound",
        what="a call of the Java API would end in UnsatisfiedLinkError",
        hint="compile classes and JNI library from the same sources",
        search=_unbound_methods,
        doubt=_without_natives,
        told=lambda aar: counted(len(aar.classes.native_methods) if aar.classes else 0, "native method"),
    ),
    AndroidRule(
        code="keep-rules-missing",
        name="rules for R8",
        what="R8 would rename or remove classes that the JNI library looks for by name",
        hint="put `-keep class ai.onnxruntime.** { *; }` into proguard.txt",
        search=_missing_rules,
        doubt=_without_java,
        told=lambda _: "proguard.txt keeps ai.onnxruntime.**",
    ),
    AndroidRule(
        code="class-version-too-new",
        name="class files that D8 reads",
        what="D8 cannot read these classes",
        hint="compile them with javac --release 8",
        search=_newer_classes,
        told=lambda aar: f"version {aar.classes.class_version}" if aar.classes and aar.classes.count else "no classes",
    ),
    AndroidRule(
        code="minimum-api-differs",
        name="API level in AndroidManifest.xml",
        what="the manifest promises apps another API level",
        hint="make the AAR again from the plan",
        search=_other_api_level,
        told=lambda aar: f"minSdkVersion {aar.minimum_api}",
    ),
    AndroidRule(
        code="extraction-set",
        name="leaves extraction to the app",
        what="the app decides how libraries are installed, and manifests would conflict",
        hint="remove android:extractNativeLibs; Android Gradle Plugin sets it from useLegacyPackaging",
        search=_extraction,
        told=lambda _: f"{ANDROID_MANIFEST} does not say",
    ),
    AndroidRule(
        code="manifest-contradicts",
        name="manifest.json describes this AAR",
        what="manifest.json describes another AAR",
        hint="make the AAR again from the plan; do not edit it",
        search=_contradictions,
        doubt=lambda aar, _promise: "" if aar.manifest else "ortrim did not make this AAR",
        told=lambda _: "version, API level, page size, ABIs and build-ids",
    ),
)


RULES: Final[tuple[AndroidRule, ...]] = (*PACKAGE_RULES, *ELF_RULES, *LINK_RULES)
OLDEST_API: Final = 21
"""What an AAR that does not say it is judged by: the oldest that NDKs since r26 build for."""


def check_aar(aar: AarFacts, promise: Promise) -> tuple[Gate, ...]:
    """Return each property that an AAR must have, and whether it has it."""
    return judged(RULES, aar, promise)


def broken_rules(gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return the references of the rules whose gates fail, in their order."""
    return broken(RULES, gates)


def require_sound_aar(aar: AarFacts, promise: Promise) -> None:
    """Refuse an AAR that is not fit to ship. Raises a `DiagnosticGroup` of `BinaryError`, one for each breach."""
    require_kept(RULES, aar, promise)


def own_promise(aar: AarFacts) -> Promise:
    """Return what an AAR of any origin promises by itself: the API level of its manifest, its own ABIs, a Java API."""
    level = OLDEST_API if aar.minimum_api is None else aar.minimum_api
    return Promise(api_level=level, java=aar.manifest is None or aar.manifest.java)
