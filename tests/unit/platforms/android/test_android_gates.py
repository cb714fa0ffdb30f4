"""Each rule for AARs is broken by a real library, or by a member, and by nothing else."""

import struct
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from aar_samples import (
    ABIS,
    CLASS,
    MANIFEST,
    aar_inputs,
    facts_of,
    fake_jdk,
    members,
    with_program_header,
    with_program_header_32,
)
from android_samples import BINDING, CXX, RUNTIME, sample
from ortrim.errors import BinaryError, DiagnosticGroup, ExitCode
from ortrim.parity.measurements import Gate, Verdict
from ortrim.platforms.android.aar import make_android_package
from ortrim.platforms.android.gates import RULES, Promise, check_aar, own_promise, require_sound_aar
from refusing import refused
from zips import zipped

ARM64: Final = f"jni/arm64-v8a/{RUNTIME}"
ARM64_BINDING: Final = f"jni/arm64-v8a/{BINDING}"
TINY: Final = Path(__file__).parents[2] / "binaries" / "data" / "tiny.so"
PROMISE: Final = Promise(api_level=24, abis=ABIS, whole_relro=True)
GNU_STACK, GNU_RELRO, LOAD = 0x6474E551, 0x6474E552, 1
GOOD: Final = sample(f"arm64-v8a-{RUNTIME}")
NEW_CLASS: Final = CLASS[:6] + b"\0\x45" + CLASS[8:]
UNBOUND: Final = CLASS.replace(b"initialiseAPIBase", b"forgottenAPICalls")

Members = dict[str, bytes]
BROKEN: Final[dict[str, Members]] = {
    "abi-unknown": {"jni/mips/libother.so": GOOD},
    "abi-mismatch": {f"jni/x86_64/{RUNTIME}": GOOD},
    "segments-not-page-aligned": {ARM64: sample("small-pages.so")},
    "relro-covers-data": {ARM64: with_program_header(GOOD, GNU_RELRO, 6, 0x100)},
    "relro-not-page-aligned": {ARM64: sample("relro-in-mid-page.so")},
    "stack-executable": {ARM64: with_program_header(GOOD, GNU_STACK, 1, 7)},
    "text-relocations": {ARM64: sample("text-relocations.so")},
    "not-stripped": {ARM64: sample("unstripped.so")},
    "build-id-missing": {ARM64: sample("no-build-id.so")},
    "built-for-newer-api": {ARM64: sample("new-api.so")},
    "source-path": {ARM64: sample("source-path.so")},
    "needed-not-public": {ARM64: sample("vendor.so")},
    "needed-too-new": {ARM64: sample("new-library.so")},
    "symbol-not-in-android": {ARM64: sample("unknown-symbol.so")},
    "symbol-too-new": {ARM64: sample("new-symbol.so")},
    "soname-differs": {ARM64: sample("versioned-name.so")},
    "abis-differ": {"jni/arm64-v8a/libextra.so": sample("nameless.so")},
    "native-method-unbound": {"classes.jar": zipped({"ai/onnxruntime/OnnxRuntime.class": UNBOUND})},
    "keep-rules-missing": {
        "proguard.txt": b"# -keep class ai.onnxruntime.** { *; }\n-keep class ai.onnxruntime.OrtSession\n"
    },
    "class-version-too-new": {"classes.jar": zipped({"ai/onnxruntime/OnnxRuntime.class": NEW_CLASS})},
    "minimum-api-differs": {"AndroidManifest.xml": MANIFEST.replace(b'"24"', b'"26"')},
    "extraction-set": {
        "AndroidManifest.xml": MANIFEST.replace(b"<application/>", b'<application android:extractNativeLibs="true"/>')
    },
}
"""What is put into a good AAR to break each rule."""
ALONG: Final = {
    "abi-unknown": {"abi-mismatch", "abis-differ", "jni-exports-missing", "native-method-unbound", "soname-differs"},
    "needed-not-public": {"symbol-not-in-android"},
    "relro-covers-data": {"relro-not-page-aligned"},
    "segments-not-page-aligned": {"relro-covers-data", "relro-not-page-aligned"},
}
"""What breaks with it, since one cannot be without the other."""


def failed(found: tuple[Gate, ...]) -> dict[str, Gate]:
    names = {rule.name: rule.code for rule in RULES}
    return {names[gate.name]: gate for gate in found if gate.verdict is Verdict.FAIL}


def test_a_good_aar_passes_all_but_what_nobody_promised(tmp_path: Path) -> None:
    found = check_aar(facts_of(tmp_path, members()), PROMISE)
    assert {gate.verdict for gate in found} == {Verdict.PASS, Verdict.NOT_JUDGED}
    (unjudged,) = (gate for gate in found if gate.verdict is Verdict.NOT_JUDGED)
    assert (unjudged.name, unjudged.detail) == ("manifest.json describes this AAR", "ortrim did not make this AAR")
    require_sound_aar(facts_of(tmp_path, members()), PROMISE)


@pytest.mark.parametrize("reference", BROKEN)
def test_each_rule_is_broken_by_its_own_library_alone(tmp_path: Path, reference: str) -> None:
    aar = facts_of(tmp_path, members() | BROKEN[reference])
    found = failed(check_aar(aar, PROMISE))
    assert found.keys() == {reference} | ALONG.get(reference, set())
    assert found[reference].detail.startswith(f"{reference}: ")
    caught = refused(DiagnosticGroup, require_sound_aar, aar, PROMISE)
    errors = {error.code: error for error in caught.diagnostics}
    assert errors.keys() == found.keys()
    assert all(isinstance(error, BinaryError) and error.where and error.why and error.hint for error in errors.values())
    assert caught.exit_code is ExitCode.BINARY


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        ("-keep class ai.onnxruntime.** {\n    *;\n}\n", True),
        ("-dontwarn x\n-keep,includedescriptorclasses class ai.onnxruntime.**{*;}\n", True),
        ("-keep class ai.onnxruntime.**\n", False),
        ("-keep class ai.onnxruntime.** { <init>(); }\n", False),
        ("-keep,allowshrinking class ai.onnxruntime.** { *; }\n", False),
        ("-keep,allowobfuscation class ai.onnxruntime.** { *; }\n", False),
        ("-keepnames class ai.onnxruntime.** { *; }\n", False),
    ],
)
def test_rules_keep_members_and_names(tmp_path: Path, rules: str, *, kept: bool) -> None:
    """JNI looks for fields and constructors by name; R8's full mode keeps no member that a rule does not name."""
    aar = facts_of(tmp_path, members() | {"proguard.txt": rules.encode()})
    assert ("keep-rules-missing" not in failed(check_aar(aar, PROMISE))) is kept


def test_a_library_for_linux_is_refused_as_such(tmp_path: Path) -> None:
    """The message says that it is not for Android, before any of what follows from that."""
    aar = facts_of(tmp_path, members() | {f"jni/x86_64/{RUNTIME}": TINY.read_bytes()})
    found = failed(check_aar(aar, PROMISE))
    assert {"not-for-android", "segments-not-page-aligned", "symbol-not-in-android", "build-id-missing"} <= found.keys()
    assert "it needs libm.so.6, libc.so.6" in found["not-for-android"].detail
    caught = refused(DiagnosticGroup, require_sound_aar, aar, PROMISE)
    assert "the library was built for Linux, not for Android" in str(caught)
    assert "linux-<architecture> package does not run on Android" in str(caught)


def test_an_abi_without_the_library_is_missed(tmp_path: Path) -> None:
    """An ABI that was promised has to be there; without a promise, those that are there are right."""
    aar = facts_of(tmp_path, members(("arm64-v8a",)))
    assert failed(check_aar(aar, PROMISE)).keys() == {"abi-missing"}
    assert "armeabi-v7a, x86, x86_64" in failed(check_aar(aar, PROMISE))["abi-missing"].detail
    assert failed(check_aar(aar, own_promise(aar))) == {}


def test_an_aar_without_libraries_is_none(tmp_path: Path) -> None:
    """Classes alone do not run a model."""
    content = {name: data for name, data in members().items() if not name.startswith("jni/")}
    aar = facts_of(tmp_path, content)
    assert failed(check_aar(aar, own_promise(aar))).keys() == {"abi-missing"}


@pytest.mark.parametrize("absent", [True, False])
def test_a_jni_library_has_to_be_there_and_to_export(tmp_path: Path, absent: bool) -> None:  # noqa: FBT001 - a case
    """Without it, or without its symbols, no native method is found."""
    content = members(("arm64-v8a",))
    if absent:
        del content[ARM64_BINDING]
    else:
        content[ARM64_BINDING] = sample("nameless.so")
    found = failed(check_aar(facts_of(tmp_path, content), own_promise(facts_of(tmp_path, content))))
    assert found.keys() == {"jni-exports-missing", "native-method-unbound"}
    assert "initialiseAPIBase" in found["native-method-unbound"].detail


def test_a_library_that_others_need_has_a_soname(tmp_path: Path) -> None:
    """One that only apps load is found by its file's name; one that a library needs is not."""
    needed = facts_of(tmp_path, members() | {ARM64: sample("nameless.so")})
    assert failed(check_aar(needed, PROMISE)).keys() == {"soname-differs"}
    extra = {f"jni/{abi}/libextra.so": sample(f"{abi}-{RUNTIME}") for abi in ABIS} | {
        "jni/arm64-v8a/libextra.so": sample("nameless.so")
    }
    found = failed(check_aar(facts_of(tmp_path, members() | extra), PROMISE))
    assert "arm64" not in found["soname-differs"].detail


def test_a_shared_cxx_library_has_to_lie_beside_in_every_abi(tmp_path: Path) -> None:
    """With it the AAR passes; without it, or in one ABI only, the gates say what is missing where."""
    needing = members() | {ARM64: sample("needs-cxx.so")}
    beside = {f"jni/{abi}/{CXX}": sample(f"{abi}-{CXX}") for abi in ABIS}
    complete = facts_of(tmp_path, needing | beside)
    require_sound_aar(complete, PROMISE)
    assert {library.name for library in complete.of_abi("arm64-v8a")} == {RUNTIME, BINDING, CXX}
    absent = failed(check_aar(facts_of(tmp_path, needing), PROMISE))
    assert absent.keys() == {"needed-not-public", "symbol-not-in-android"}
    assert absent["needed-not-public"].detail.endswith(f"{ARM64}: it needs {CXX}")
    only = facts_of(tmp_path, needing | {f"jni/arm64-v8a/{CXX}": sample(f"arm64-v8a-{CXX}")})
    assert failed(check_aar(only, PROMISE)).keys() == {"abis-differ"}


def test_a_shared_cxx_library_is_judged_like_the_others(tmp_path: Path) -> None:
    """That of an NDK before r27 has pages of 4 KB."""
    beside = {f"jni/{abi}/{CXX}": sample(f"{abi}-{CXX}") for abi in ABIS}
    small = with_program_header(beside[f"jni/arm64-v8a/{CXX}"], LOAD, 7, 4096)
    aar = facts_of(tmp_path, members() | beside | {f"jni/arm64-v8a/{CXX}": small})
    found = failed(check_aar(aar, PROMISE))
    assert found.keys() == {"segments-not-page-aligned"}
    assert f"jni/arm64-v8a/{CXX}" in found["segments-not-page-aligned"].detail


def test_an_older_promise_finds_newer_formats_and_symbols(tmp_path: Path) -> None:
    """What loads on Android 7 need not load on Android 5."""
    content = members() | {ARM64: sample("new-hash.so")}
    aar = facts_of(tmp_path, content | {"AndroidManifest.xml": MANIFEST.replace(b'"24"', b'"21"')})
    found = failed(check_aar(aar, replace(PROMISE, api_level=21)))
    assert found.keys() == {"built-for-newer-api", "loader-too-old"}
    assert "DT_GNU_HASH (API level 23)" in found["loader-too-old"].detail


def test_relro_of_others_may_end_in_a_page_that_holds_nothing_else(tmp_path: Path) -> None:
    """As linkers leave it: what stays writable begins on another page, so that Android loads it."""
    aar = facts_of(tmp_path, members(("arm64-v8a",)) | {ARM64: sample("relro-in-mid-page.so")})
    library = next(library for library in aar.libraries if library.name == RUNTIME)
    assert library.relro is not None
    assert library.relro.end % 16384 == 4096
    found = check_aar(aar, own_promise(aar))
    verdicts = {gate.name: gate.verdict for gate in found}
    assert failed(found) == {}
    assert verdicts["RELRO ends with a page of 16 KB"] is Verdict.NOT_JUDGED
    assert verdicts["RELRO apart from writable data"] is Verdict.PASS
    after = facts_of(tmp_path, members() | {ARM64: with_program_header(GOOD, GNU_RELRO, 6, 0x3B10)})
    assert "0xc770 in the same page" in failed(check_aar(after, own_promise(after)))["relro-covers-data"].detail


def test_relro_may_not_begin_behind_writable_data_in_its_page(tmp_path: Path) -> None:
    """The loader protects from the beginning of the page, too."""
    behind = with_program_header(with_program_header(GOOD, GNU_RELRO, 3, 0x8600), GNU_RELRO, 6, 0x3A00)
    found = failed(check_aar(facts_of(tmp_path, members() | {ARM64: behind}), PROMISE))
    assert found.keys() == {"relro-covers-data"}
    assert "RELRO begins at 0x8600, and 0x85f0 in the same page" in found["relro-covers-data"].detail


def test_the_ndks_own_library_is_taken_as_it_is(tmp_path: Path) -> None:
    """Nobody links it anew; that it can be loaded is asked of it all the same."""
    beside = {f"jni/{abi}/{CXX}": sample(f"{abi}-{CXX}") for abi in ABIS}
    aar = facts_of(tmp_path, members() | beside)
    ends = {library.relro.end % 16384 for library in aar.libraries if library.name == CXX and library.relro}
    assert ends == {4096}
    assert failed(check_aar(aar, PROMISE)) == {}


def test_an_address_off_its_place_in_the_page_is_refused(tmp_path: Path) -> None:
    """A segment that claims an alignment that it does not have cannot be mapped."""
    crooked = with_program_header(GOOD, LOAD, 2, 0x10)
    found = failed(check_aar(facts_of(tmp_path, members() | {ARM64: crooked}), PROMISE))
    assert "elsewhere in a page" in found["segments-not-page-aligned"].detail


def test_many_breaches_are_cut_short_in_a_gate_and_told_in_full_as_diagnostics(tmp_path: Path) -> None:
    """A report stays readable; whoever mends it gets the whole list."""
    changed = {f"jni/{abi}/{name}": sample("small-pages.so") for abi in ABIS for name in (RUNTIME, BINDING)}
    aar = facts_of(tmp_path, members() | changed)
    assert failed(check_aar(aar, PROMISE))["segments-not-page-aligned"].detail.endswith("; and 5 more")
    caught = refused(DiagnosticGroup, require_sound_aar, aar, PROMISE)
    found = [error for error in caught.diagnostics if error.code == "segments-not-page-aligned"]
    assert len(found) == len(changed)


@pytest.mark.parametrize("abi", ["armeabi-v7a", "x86"])
@pytest.mark.parametrize(
    ("change", "reference"),
    [
        ((LOAD, 7, 4096), "segments-not-page-aligned"),
        ((GNU_RELRO, 5, 0x100), "relro-covers-data"),
        ((GNU_STACK, 6, 7), "stack-executable"),
    ],
)
def test_32_bit_libraries_are_held_to_the_same(
    tmp_path: Path, abi: str, change: tuple[int, int, int], reference: str
) -> None:
    """Their headers have another layout; the rules are the same in every ABI."""
    path = f"jni/{abi}/{RUNTIME}"
    changed = with_program_header_32(sample(f"{abi}-{RUNTIME}"), *change)
    aar = facts_of(tmp_path, members() | {path: changed})
    found = failed(check_aar(aar, own_promise(aar)))
    assert found.keys() == {reference}
    assert path in found[reference].detail


def test_a_stack_that_nothing_is_said_of_is_executable(tmp_path: Path) -> None:
    """The kernel's default for a library without PT_GNU_STACK."""
    silent = with_program_header(GOOD, GNU_STACK, 0, 0)
    found = failed(check_aar(facts_of(tmp_path, members() | {ARM64: silent}), PROMISE))
    assert found.keys() == {"stack-executable"}


def test_every_segment_counts(tmp_path: Path) -> None:
    whole = sample(f"arm64-v8a-{BINDING}")
    (start,), (count,) = struct.unpack_from("<Q", whole, 32), struct.unpack_from("<H", whole, 56)
    loads = [at for at in range(start, start + 56 * count, 56) if struct.unpack_from("<I", whole, at)[0] == LOAD]
    changed = bytearray(whole)
    struct.pack_into("<Q", changed, loads[-1] + 48, 4096)
    found = failed(check_aar(facts_of(tmp_path, members() | {ARM64_BINDING: bytes(changed)}), PROMISE))
    assert len(loads) > 1
    assert f"{ARM64_BINDING}: a PT_LOAD" in found["segments-not-page-aligned"].detail


@pytest.mark.parametrize(
    ("said", "instead", "why"),
    [
        (b'"api_level": 24', b'"api_level": 21', "API level 21, promised is 24"),
        (b'"page_bytes": 16384', b'"page_bytes": 4096', "pages of 4096 bytes, promised are 16384"),
        (b'"ort_version": "1.21.0"', b'"ort_version": "1.22.0"', "ONNX Runtime 1.22.0, the library says 1.21.0"),
        (b'"abi": "x86"', b'"abi": "mips"', "it describes other libraries: "),
    ],
    ids=["api-level", "page-size", "version", "abi"],
)
def test_a_manifest_that_describes_another_aar(tmp_path: Path, said: bytes, instead: bytes, why: str) -> None:
    package = make_android_package(aar_inputs(tmp_path / "in"), fake_jdk(tmp_path / "jdk"), tmp_path / "out")
    with zipfile.ZipFile(package.aar) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    own = "META-INF/ortrim/manifest.json"
    assert said in content[own]
    require_sound_aar(facts_of(tmp_path, content), PROMISE)
    found = failed(check_aar(facts_of(tmp_path, content | {own: content[own].replace(said, instead)}), PROMISE))
    assert found.keys() == {"manifest-contradicts"}
    assert why in found["manifest-contradicts"].detail


def test_every_rule_has_something_that_breaks_it() -> None:
    elsewhere = {
        "not-for-android": test_a_library_for_linux_is_refused_as_such,
        "loader-too-old": test_an_older_promise_finds_newer_formats_and_symbols,
        "abi-missing": test_an_abi_without_the_library_is_missed,
        "jni-exports-missing": test_a_jni_library_has_to_be_there_and_to_export,
        "manifest-contradicts": test_a_manifest_that_describes_another_aar,
    }
    assert {rule.code for rule in RULES} == set(BROKEN) | set(elsewhere)


def test_what_passes_says_what_was_found(tmp_path: Path) -> None:
    details = {gate.name: gate.detail for gate in check_aar(facts_of(tmp_path, members()), PROMISE)}
    assert details["all ABIs"] == "arm64-v8a, armeabi-v7a, x86, x86_64"
    assert details["segments aligned to 16 KB"] == "all to 16,384 bytes or more"
    assert details["native methods are bound"] == "3 native methods"
    assert details["API level in AndroidManifest.xml"] == "minSdkVersion 24"
    assert details["stripped"] == "in 8 files of 4 ABIs"


def test_references_and_names_of_rules_are_their_own() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES) >= 15
