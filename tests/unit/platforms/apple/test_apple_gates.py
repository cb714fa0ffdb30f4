"""Each rule for xcframeworks is broken by a real library, or by a file, and by nothing else."""

import hashlib
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from apple_samples import (
    DEVICE_SLICE,
    HEADER,
    MAC_SLICE,
    PRIVACY,
    SIMULATOR_SLICE,
    Files,
    archive,
    device_library,
    entry,
    framework_plist,
    load_command,
    plist,
    sample,
    with_build,
    write_files,
    xcframework_files,
    xcframework_plist,
    zipped,
)
from ortrim.binaries.apple import ApplePlatform, AppleVariant, Slice
from ortrim.binaries.macho.files import MachBuild, MachImage, MachNeed, universal_file
from ortrim.binaries.xcframework import SliceFacts, XcframeworkFacts, read_xcframework
from ortrim.errors import BinaryError, DiagnosticGroup, ExitCode
from ortrim.parity.measurements import Gate, Verdict
from ortrim.platforms.apple.gates import RULES, ApplePromise, broken_rules, check_xcframework, require_sound_xcframework
from refusing import refused

DEVICE, SIMULATOR, MAC = (f"{name}/onnxruntime.framework" for name in (DEVICE_SLICE, SIMULATOR_SLICE, MAC_SLICE))
BINARY: Final = f"{SIMULATOR}/onnxruntime"
INFO: Final = f"{DEVICE}/Info.plist"
PROMISE: Final = ApplePromise(
    slices=(
        Slice(platform=ApplePlatform.IOS, architectures=("arm64",)),
        Slice(platform=ApplePlatform.IOS, variant=AppleVariant.SIMULATOR, architectures=("arm64", "x86_64")),
        Slice(platform=ApplePlatform.MACOS, architectures=("arm64", "x86_64")),
    ),
    minimum_os=(("ios", "15.1"), ("ios-simulator", "15.1"), ("macos", "13.4")),
    version="1.21.0",
    budgets=((DEVICE_SLICE, 70_000),),
    system_symbols=frozenset({"mach_absolute_time", "dyld_stub_binder", "other_call"}),
)
SIMULATOR_NUMBER: Final = 7
"""Apple's number for simulators of phones, in LC_BUILD_VERSION."""
INTEL: Final = sample("simulator-x86_64.dylib")
SYMBOLS, DYLD_INFO, ENCRYPTION, BUILD = 0xB, 0x80000022, 0x2C, 0x32
"""Load commands."""
DEFINED, RELOCATIONS, LAZY, SDK = 16, 64, 32, 16
"""Where they say from where on symbols are defined, where relocations lie, and lazy bindings, and the SDK's version."""
SLICES: Final = (entry(DEVICE_SLICE), entry(SIMULATOR_SLICE), entry(MAC_SLICE))
MISLABELLED: Final = {**entry(DEVICE_SLICE), "SupportedArchitectures": ["arm64", "x86_64"]}


def simulator(x86_64: bytes) -> bytes:
    return universal_file({"arm64": sample("simulator-arm64.dylib"), "x86_64": x86_64})


def said(platform: str = "iPhoneOS", minimum: str = "15.1", **other: object) -> bytes:
    """Return what the device's framework says of itself, with something else in it."""
    return plist(framework_plist(platform, "MinimumOSVersion", minimum, **other))


def without(kind: int, data: bytes = INTEL) -> bytes:
    """Return a library with a load command made into one that nobody knows."""
    return changed(data, kind, 0, "<I", 0x7E)


def changed(data: bytes, kind: int, field: int, form: str, *values: int) -> bytes:
    """Return a library with other numbers in a load command."""
    content = bytearray(data)
    struct.pack_into(form, content, load_command(data, kind) + field, *values)
    return bytes(content)


def changed_segment(name: str, field: int, form: str, *values: int) -> bytes:
    """Return the simulator's library for Intel with other numbers in the load command of a segment."""
    content = bytearray(INTEL)
    struct.pack_into(form, content, INTEL.index(name.encode().ljust(16, b"\0")) - 8 + field, *values)
    return bytes(content)


def needed_twice() -> bytes:
    """Return a library that needs the system's twice, as one does that is linked with a stub of it and with zig's."""
    other, own = b"/opt/homebrew/lib/libother.dylib", b"/usr/lib/libSystem.B.dylib"
    return sample("needs-other.dylib").replace(other, own.ljust(len(other), b"\0"))


def misaligned() -> bytes:
    """Return a library whose lazy bindings begin four bytes later, and are as many fewer."""
    start, size = struct.unpack_from("<II", INTEL, load_command(INTEL, DYLD_INFO) + LAZY)
    return changed(INTEL, DYLD_INFO, LAZY, "<II", start + 4, size - 4)


def as_program() -> bytes:
    """Return the simulator's library for Intel as a bundle that can only be loaded by name."""
    data = bytearray(sample("simulator-x86_64.dylib"))
    data[12] = 8
    return bytes(data)


BROKEN: Final[dict[str, Files]] = {
    "xcframework-keys-wrong": {"Info.plist": xcframework_plist(*SLICES, CFBundlePackageType="FMWK")},
    "slices-clash": {
        "Info.plist": xcframework_plist(*SLICES, entry("ios-arm64_arm64e", SupportedArchitectures=["arm64"])),
        **{
            name.replace(DEVICE_SLICE, "ios-arm64_arm64e"): data
            for name, data in xcframework_files().items()
            if name.startswith(f"{DEVICE}/")
        },
    },
    "slice-unlisted": {"ios-armv7/libonnxruntime.a": b""},
    "link-broken": {f"{MAC}/Versions/A/Frameworks": "../../../../../../etc"},
    "finder-files": {f"{DEVICE}/._onnxruntime": b"\0"},
    "module-map-missing": {f"{DEVICE}/Modules/module.modulemap": b"module other {}\n"},
    "module-header-missing": {
        f"{DEVICE}/Modules/module.modulemap": b'framework module onnxruntime {\n  umbrella header "absent.h"\n}\n'
    },
    "privacy-reason-missing": {f"{DEVICE}/PrivacyInfo.xcprivacy": plist(PRIVACY | {"NSPrivacyAccessedAPITypes": []})},
    "framework-not-versioned": {f"{MAC}/Versions/Current": "B"},
    "framework-versioned": {f"{DEVICE}/Versions/A/Resources/readme.txt": b""},
    "other-binaries": {f"{DEVICE}/libhelper.a": archive({"a.o": sample("ios-arm64.o")})},
    "bundle-nested": {f"{DEVICE}/Frameworks/other.txt": b""},
    "plist-key-missing": {INFO: said(CFBundleVersion=None)},
    "bundle-version-invalid": {INFO: said(CFBundleVersion="1.21.0-rc1")},
    "bundle-identifier-invalid": {INFO: said(CFBundleIdentifier="org.example.onnx_runtime")},
    "executable-differs": {INFO: said(CFBundleExecutable="onnxruntime-trimmed")},
    "minimum-os-missing": {INFO: said(minimum="")},
    "minimum-os-differs": {INFO: said(minimum="13.0")},
    "supported-platforms-wrong": {INFO: said("iPhoneSimulator")},
    "version-differs": {INFO: said(CFBundleShortVersionString="1.20.0")},
    "platform-unsaid": {BINARY: simulator(without(0x32))},
    "not-a-library": {BINARY: simulator(as_program())},
    "exports-others": {BINARY: simulator(sample("extra.dylib"))},
    "api-not-exported": {BINARY: simulator(sample("no-entry.dylib"))},
    "bitcode-embedded": {BINARY: simulator(sample("bitcode.dylib"))},
    "install-name-wrong": {BINARY: simulator(sample("plain-name.dylib"))},
    "needed-not-system": {BINARY: simulator(sample("needs-other.dylib"))},
    "debug-information-inside": {f"{DEVICE}/onnxruntime": archive({"debug.o": sample("debug.o")})},
    "uuid-missing": {BINARY: simulator(without(0x1B))},
    "architectures-differ": {"Info.plist": xcframework_plist(MISLABELLED, *SLICES[1:])},
    "built-for-newer-system": {BINARY: simulator(sample("newer.dylib"))},
    "platform-differs": {f"{DEVICE}/onnxruntime": sample("simulator-arm64.dylib")},
    "slice-over-budget": {f"{DEVICE}/onnxruntime": device_library() + bytes(10_000)},
    "linkedit-disordered": {BINARY: simulator(INTEL + bytes(16))},
    "linkedit-misaligned": {BINARY: simulator(misaligned())},
    "symbols-disordered": {BINARY: simulator(changed(INTEL, SYMBOLS, DEFINED, "<I", 2))},
    "fixups-mixed": {BINARY: simulator(changed(INTEL, SYMBOLS, RELOCATIONS, "<II", 0x2000, 1))},
    "segment-rights-wrong": {BINARY: simulator(changed_segment("__LINKEDIT", 60, "<I", 3))},
    "segment-misplaced": {BINARY: simulator(changed_segment("__DATA_CONST", 24, "<Q", 0x1800))},
    "needed-twice": {BINARY: simulator(needed_twice())},
    "encryption-info-missing": {f"{DEVICE}/onnxruntime": without(ENCRYPTION, device_library())},
    "sdk-unsaid": {BINARY: simulator(changed(INTEL, BUILD, SDK, "<I", 0))},
    "import-unknown": {BINARY: simulator(INTEL.replace(b"_mach_absolute_time", b"_mach_absolute_tide"))},
}
"""What is put into a good xcframework to break each rule."""
ABSENT: Final[dict[str, str]] = {
    "binary-missing": f"{DEVICE}/onnxruntime",
    "headers-missing": f"{DEVICE}/Headers",
    "privacy-manifest-missing": f"{DEVICE}/PrivacyInfo.xcprivacy",
    "framework-plist-missing": INFO,
}
"""What is taken out of it to break others."""
ALONG: Final = {
    "framework-not-versioned": {"link-broken"},
    "headers-missing": {"module-header-missing"},
    "built-for-newer-system": {"minimum-os-differs"},
    "slice-over-budget": {"linkedit-disordered"},
}
"""What breaks with it, since one cannot be without the other."""


def with_other_build(each: SliceFacts, build: MachBuild) -> SliceFacts:
    """Return a slice whose every architecture is built for another system as well."""
    return changed_images(each, lambda image: replace(image, builds=tuple(sorted((*image.builds, build)))))


def with_need(each: SliceFacts, need: MachNeed) -> SliceFacts:
    """Return a slice whose every architecture needs another library."""
    return changed_images(each, lambda image: replace(image, needed=(*image.needed, need)))


def changed_images(each: SliceFacts, change: Callable[[MachImage], MachImage]) -> SliceFacts:
    assert each.binary is not None
    return replace(each, binary=replace(each.binary, images=tuple(map(change, each.images))))


def facts_of(folder: Path, files: Files) -> XcframeworkFacts:
    return read_xcframework(write_files(folder / "onnxruntime.xcframework", files))


def failed(found: tuple[Gate, ...]) -> dict[str, Gate]:
    names = {rule.name: rule.code for rule in RULES}
    return {names[gate.name]: gate for gate in found if gate.verdict is Verdict.FAIL}


def require_broken(facts: XcframeworkFacts, reference: str) -> None:
    """Require that the rule with a reference is broken, and no other but what goes along with it."""
    found = failed(check_xcframework(facts, PROMISE))
    assert found.keys() == {reference} | ALONG.get(reference, set())
    assert broken_rules(check_xcframework(facts, PROMISE)) == tuple(found)
    assert found[reference].detail.startswith(f"{reference}: ")
    caught = refused(DiagnosticGroup, require_sound_xcframework, facts, PROMISE)
    errors = {error.code: error for error in caught.diagnostics}
    assert errors.keys() == found.keys()
    assert all(isinstance(error, BinaryError) and error.where and error.why and error.hint for error in errors.values())
    assert caught.exit_code is ExitCode.BINARY


def test_a_good_xcframework_passes_all_but_what_nobody_promised(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, xcframework_files())
    unjudged = [gate.name for gate in check_xcframework(facts, PROMISE) if gate.verdict is Verdict.NOT_JUDGED]
    assert (failed(check_xcframework(facts, PROMISE)), unjudged) == ({}, ["checksum of Package.swift"])
    require_sound_xcframework(facts, PROMISE)
    assert failed(check_xcframework(facts)) == {}


def test_what_the_load_commands_say_stands_in_the_gates(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, xcframework_files())
    told = {gate.name: gate.detail for gate in check_xcframework(facts, replace(PROMISE, budgets=()))}
    device, simulators, mac = told["platform of the load commands"].split("; ")
    assert device.startswith(f"{DEVICE_SLICE}: ios 15.1")
    assert simulators.startswith(f"{SIMULATOR_SLICE}: ios simulator 15.1")
    assert mac.startswith(f"{MAC_SLICE}: macos 13.4")
    assert told["oldest system"] == f"{DEVICE_SLICE}: 15.1; {SIMULATOR_SLICE}: 15.1; {MAC_SLICE}: 13.4"
    assert f"{MAC_SLICE}: @rpath/onnxruntime.framework/Versions/A/onnxruntime" in told["install name"].split("; ")
    assert told["public API only"] == "OrtGetApiBase"
    assert told["needs libraries of the system only"].endswith(f"; {MAC_SLICE}: /usr/lib/libSystem.B.dylib")
    assert told["SDK of the load command"] == "27.0"
    assert told["imports of the system"] == "2"
    uuids = {image.uuid for _, image in facts.images}
    assert {word.rpartition(" ")[2] for word in told["UUID"].replace(";", ",").split(", ")} == uuids
    assert told["size of each slice"].startswith(
        f"there is no budget: {DEVICE_SLICE} {len(device_library()):,} bytes; "
    )


def test_what_all_slices_say_is_said_once(tmp_path: Path) -> None:
    """And static libraries, which have neither name nor UUID, are counted."""
    files = {name: data for name, data in xcframework_files().items() if name.startswith(DEVICE_SLICE)}
    files |= {f"{DEVICE}/onnxruntime": archive({"onnxruntime.o": sample("ios-arm64.o")})}
    facts = facts_of(tmp_path, files | {"Info.plist": xcframework_plist(SLICES[0])})
    told = {gate.name: gate.detail for gate in check_xcframework(facts)}
    assert told["platform of the load commands"] == "ios 15.1"
    assert told["install name"] == told["UUID"] == "in 1 slice"


@pytest.mark.parametrize("reference", BROKEN)
def test_each_rule_is_broken_by_its_own_slice_alone(tmp_path: Path, reference: str) -> None:
    require_broken(facts_of(tmp_path, xcframework_files() | BROKEN[reference]), reference)


@pytest.mark.parametrize("reference", ABSENT)
def test_each_rule_is_broken_by_what_its_slice_lacks(tmp_path: Path, reference: str) -> None:
    """A file that is not there breaks the rule that asks for it."""
    gone = ABSENT[reference]
    files = {name: data for name, data in xcframework_files().items() if not f"{name}/".startswith(f"{gone}/")}
    require_broken(facts_of(tmp_path, files), reference)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"SupportedPlatform": "iphoneos"}, "SupportedPlatform is 'iphoneos'"),
        ({"SupportedPlatformVariant": "emulator"}, "SupportedPlatformVariant is 'emulator'"),
        ({"SupportedArchitectures": []}, "there are no SupportedArchitectures"),
        ({"SupportedArchitectures": "arm64"}, "there are no SupportedArchitectures"),
        ({"LibraryIdentifier": 7}, "LibraryIdentifier is ''"),
        ({"BinaryPath": "onnxruntime.framework/absent"}, "BinaryPath leads nowhere"),
        ({"BinaryPath": "../../etc/passwd", "DebugSymbolsPath": "dSYMs"}, "BinaryPath, DebugSymbolsPath leads nowhere"),
    ],
)
def test_entries_are_in_words_that_xcode_knows(tmp_path: Path, wrong: dict[str, object], why: str) -> None:
    """What an entry says wrongly is told, and what follows from it is told of the same slice."""
    info = xcframework_plist({**entry(DEVICE_SLICE), **wrong}, *SLICES[1:])
    found = failed(check_xcframework(facts_of(tmp_path, xcframework_files() | {"Info.plist": info})))
    assert why in found["slice-entry-wrong"].detail


def test_a_slice_that_was_promised_has_to_be_there(tmp_path: Path) -> None:
    files = {name: data for name, data in xcframework_files().items() if not name.startswith(MAC_SLICE)}
    facts = facts_of(tmp_path, files | {"Info.plist": xcframework_plist(*SLICES[:2])})
    found = failed(check_xcframework(facts, PROMISE))
    assert found.keys() == {"slice-missing"}
    assert found["slice-missing"].detail.endswith("macos-arm64_x86_64: there is no library for arm64, x86_64")
    assert failed(check_xcframework(facts)) == {}


@pytest.mark.parametrize("text", ['checksum: "{}"', 'checksum: ""', "", 'checksum: "{}", checksum: "{}"'])
def test_package_swift_has_the_checksum_of_the_archive(tmp_path: Path, text: str) -> None:
    """Which is the SHA-256 that Swift's package manager computes of the zip that it downloads."""
    path = tmp_path / "onnxruntime.xcframework.zip"
    path.write_bytes(zipped(xcframework_files()))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    facts = read_xcframework(path)
    require_sound_xcframework(facts, replace(PROMISE, package_swift=f'checksum: "{digest}"'))
    promise = replace(PROMISE, package_swift=text.replace("{}", digest[::-1]) or "let package = Package()")
    found = failed(check_xcframework(facts, promise))
    assert found.keys() == {"swift-checksum-differs"}
    assert found["swift-checksum-differs"].detail.endswith(f"the archive's SHA-256 is {digest}")


def test_a_static_framework_is_held_to_its_names_and_objects(tmp_path: Path) -> None:
    """Its archive has no install name and no UUID; public names and bitcode are asked of its objects."""
    sound = archive({"onnxruntime.o": sample("ios-arm64.o")})
    files = xcframework_files() | {f"{DEVICE}/onnxruntime": sound}
    require_sound_xcframework(facts_of(tmp_path / "sound", files), PROMISE)
    other = archive({"a.o": sample("ios-arm64.o"), "b.o": sample("bitcode.o"), "c.o": b"BC\xc0\xde" + bytes(20)})
    found = failed(check_xcframework(facts_of(tmp_path / "other", files | {f"{DEVICE}/onnxruntime": other})))
    assert found.keys() == {"bitcode-embedded"}


def test_an_object_for_another_system_is_found_among_others(tmp_path: Path) -> None:
    """One object of a simulator's in a library for devices: Apple's linker refuses it when it comes to that object."""
    other = with_build(sample("ios-arm64.o"), platform=SIMULATOR_NUMBER)
    mixed = archive({"a.o": sample("ios-arm64.o"), "b.o": other})
    found = failed(check_xcframework(facts_of(tmp_path, xcframework_files() | {f"{DEVICE}/onnxruntime": mixed})))
    assert found.keys() == {"platform-differs"}
    assert found["platform-differs"].detail.endswith("built for ios, ios-simulator, the slice is ios")


def test_a_library_of_macs_and_catalyst_together_is_held_to_its_own_word(tmp_path: Path) -> None:
    """Apple's linker writes both systems into one library: each slice is judged by the word that is for it."""
    facts = facts_of(tmp_path, xcframework_files())
    catalyst = MachBuild(platform="ios", variant="maccatalyst", minimum_os="16.4", sdk="17.5")
    slices = tuple(with_other_build(each, catalyst) if each.platform == "macos" else each for each in facts.slices)
    assert slices != facts.slices
    assert failed(check_xcframework(replace(facts, slices=slices), PROMISE)) == {}


def test_a_package_of_ours_needs_nothing_beside_it(tmp_path: Path) -> None:
    """Others may say which framework is to lie beside theirs; what was promised is whole by itself."""
    facts = facts_of(tmp_path, xcframework_files())
    beside = MachNeed(name="@rpath/libc++.1.dylib", weak=False)
    slices = tuple(with_need(each, beside) if each.platform == "macos" else each for each in facts.slices)
    changed = replace(facts, slices=slices)
    assert failed(check_xcframework(changed)) == {}
    assert failed(check_xcframework(changed, PROMISE)).keys() == {"needed-not-system"}


def test_every_architecture_of_a_slice_counts(tmp_path: Path) -> None:
    """Its oldest system is that of the newest of its parts."""
    newer = with_build(sample("simulator-x86_64.dylib"), minimum=(16, 0))
    found = failed(check_xcframework(facts_of(tmp_path, xcframework_files() | {BINARY: simulator(newer)})))
    assert found.keys() == {"minimum-os-differs"}
    assert "(x86_64): MinimumOSVersion is 15.1, the load command says 16.0" in found["minimum-os-differs"].detail


def test_a_framework_without_a_word_on_platforms_is_only_refused_where_one_was_promised(tmp_path: Path) -> None:
    """Apple refuses wrong values (ITMS-90542), and suggests to leave the key out."""
    facts = facts_of(tmp_path, xcframework_files() | {INFO: said(CFBundleSupportedPlatforms=None)})
    assert failed(check_xcframework(facts)) == {}
    assert failed(check_xcframework(facts, PROMISE)).keys() == {"supported-platforms-wrong"}


def test_libraries_without_frameworks_are_judged_by_what_they_have(tmp_path: Path) -> None:
    """An xcframework may hold plain libraries; what is asked of frameworks is not judged then."""
    library = {**entry(DEVICE_SLICE, library="libonnxruntime.a"), "HeadersPath": "Headers"}
    content = archive({"onnxruntime.o": sample("ios-arm64.o")})
    files: Files = {
        "Info.plist": xcframework_plist(library),
        f"{DEVICE_SLICE}/libonnxruntime.a": content,
        f"{DEVICE_SLICE}/{HEADER}": b"",
    }
    found = check_xcframework(facts_of(tmp_path, files))
    assert failed(found) == {}
    assert {gate.detail for gate in found if gate.name == "module map"} == {"it contains libraries, not frameworks"}


def test_apples_own_errors_are_named() -> None:
    """So that whoever has met one finds it."""
    told = {rule.code: rule.what for rule in RULES}
    named = {
        "minimum-os-differs": "ITMS-90208", "minimum-os-missing": "ITMS-90360",
        "supported-platforms-wrong": "ITMS-90542",
        "encryption-info-missing": "ITMS-90125", "sdk-unsaid": "ITMS-90512",
        "bitcode-embedded": "ITMS-90482", "other-binaries": "ITMS-90171", "bundle-nested": "ITMS-90206",
        "bundle-version-invalid": "ITMS-90060", "privacy-manifest-missing": "ITMS-91053",
    }  # fmt: skip
    assert [reference for reference, error in named.items() if error not in told[reference]] == []


def test_every_rule_has_something_that_breaks_it() -> None:
    elsewhere = {
        "slice-entry-wrong": test_entries_are_in_words_that_xcode_knows,
        "slice-missing": test_a_slice_that_was_promised_has_to_be_there,
        "swift-checksum-differs": test_package_swift_has_the_checksum_of_the_archive,
    }
    assert {rule.code for rule in RULES} == set(BROKEN) | set(ABSENT) | set(elsewhere)


def test_references_and_names_of_rules_are_their_own() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES) >= 15
