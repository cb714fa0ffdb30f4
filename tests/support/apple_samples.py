"""Small libraries for Apple's systems: recorded under `tests/unit/binaries/data/apple`, and how zig links them."""

import io
import plistlib
import stat
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from apple_slices import link_slice
from ortrim.base.command import run
from ortrim.binaries.macho.files import universal_file

RECORDED: Final = Path(__file__).parents[1] / "unit" / "binaries" / "data" / "apple"
BUILD_VERSION = 0x32
HEADER: Final = "Headers/onnxruntime_c_api.h"
IOS: Final = "@rpath/onnxruntime.framework/onnxruntime"
MAC: Final = "@rpath/onnxruntime.framework/Versions/A/onnxruntime"
SOURCE: Final = """
#define PUBLIC __attribute__((visibility("default")))
unsigned long mach_absolute_time(void);
#ifdef OTHER
int other_call(void);
PUBLIC int OrtGetApiBase(void) { return (int)mach_absolute_time() + other_call(); }
#elif defined NO_ENTRY
PUBLIC int OrtSessionOptionsAppendExecutionProvider_CPU(void) { return (int)mach_absolute_time(); }
#else
PUBLIC int OrtGetApiBase(void) { return (int)mach_absolute_time(); }
#endif
#ifdef EXTRA
PUBLIC int another_abseil(void) { return 1; }
#endif
#ifdef BITCODE
__attribute__((section("__LLVM,__bitcode"), used)) static const char marker[1] = {0};
#endif
int hidden_call(void) { return 2; }
"""
HANDLERS: Final = """
extern "C" unsigned long mach_absolute_time(void);
extern "C" int statvfs(const char *, void *);
struct Error { int code; };
__attribute__((noinline)) static int thrown(int code) {
  if (code) throw Error{code};
  return 0;
}
extern "C" int dead(int code) {
  try { return thrown(code) + statvfs("dead", nullptr); } catch (const Error &error) { return -error.code; }
}
static int started = (int)mach_absolute_time();
extern "C" __attribute__((visibility("default"))) int OrtGetApiBase(int code) {
  try { return thrown(code) + started; } catch (const Error &error) { return error.code; }
}
"""
"""C++ whose calls have to be unwound, and a function that nothing calls."""
OTHER: Final = '__attribute__((visibility("default"))) int other_call(void) { return 1; }\n'


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A recorded file: the target and the words that zig makes it with; `object` for what is compiled only."""

    file: str
    target: str
    words: tuple[str, ...] = ()
    install_name: str = IOS
    object: bool = False
    needs_other: bool = False
    source: str = "source.c"


SIMULATOR: Final = "x86_64-ios.15.1-simulator"
SAMPLES: Final = (
    Sample(file="simulator-arm64.dylib", target="aarch64-ios.15.1-simulator"),
    Sample(file="simulator-x86_64.dylib", target=SIMULATOR),
    Sample(file="macos-arm64.dylib", target="aarch64-macos.13.4", install_name=MAC),
    Sample(file="macos-x86_64.dylib", target="x86_64-macos.13.4", install_name=MAC),
    Sample(file="ios-arm64.o", target="aarch64-ios.15.1", object=True),
    Sample(file="debug.o", target="aarch64-ios.15.1", words=("-g", "-ffile-compilation-dir=."), object=True),
    Sample(file="bitcode.o", target="aarch64-ios.15.1", words=("-DBITCODE",), object=True),
    Sample(file="handlers-arm64.o", target="aarch64-ios.15.1", object=True, source="handlers.cc"),
    Sample(file="handlers-x86_64.o", target="x86_64-macos.13.4", object=True, source="handlers.cc"),
    Sample(file="extra.dylib", target=SIMULATOR, words=("-DEXTRA",)),
    Sample(file="no-entry.dylib", target=SIMULATOR, words=("-DNO_ENTRY",)),
    Sample(file="bitcode.dylib", target=SIMULATOR, words=("-DBITCODE",)),
    Sample(file="newer.dylib", target="x86_64-ios.17.2-simulator"),
    Sample(file="plain-name.dylib", target=SIMULATOR, install_name="/usr/local/lib/libonnxruntime.dylib"),
    Sample(file="needs-other.dylib", target=SIMULATOR, words=("-DOTHER",), needs_other=True),
)
DEVICE: Final = "device-arm64.dylib"
"""A library for phones: linked as the slices are, since zig needs a stub for these."""


def sample(file: str) -> bytes:
    return (RECORDED / file).read_bytes()


def link_samples(zig: Path, folder: Path, work: Path) -> None:
    (work / "slice").mkdir()
    (work / "source.c").write_text(SOURCE)
    (work / "handlers.cc").write_text(HANDLERS)
    (work / "other.c").write_text(OTHER)
    other = Sample(file="libother.dylib", target=SIMULATOR, install_name="/opt/homebrew/lib/libother.dylib")
    _zig(zig, other, work, ("other.c",))
    (folder / DEVICE).write_bytes(link_slice(zig, "ios-arm64", work / "slice", "-DCALL=(int)mach_absolute_time()"))
    for each in SAMPLES:
        _zig(zig, each, work, (*each.words, each.source, *(["libother.dylib"] if each.needs_other else [])))
        (work / each.file).replace(folder / each.file)


def _zig(zig: Path, each: Sample, work: Path, words: tuple[str, ...]) -> None:
    linked = ("-shared", "-s", f"-Wl,-install_name,{each.install_name}", "-Wl,-undefined,dynamic_lookup")
    environment = {"ZIG_LOCAL_CACHE_DIR": str(work / "zig"), "ZIG_GLOBAL_CACHE_DIR": str(work / "zig"), "PATH": ""}
    debug = () if "-g" in words else ("-g0",)
    command = (
        str(zig), "cc", "-target", each.target, "-nostdlib", "-Os", "-fvisibility=hidden", "-fno-builtin", *debug,
        *(("-c",) if each.object else linked), *words, "-o", each.file,
    )  # fmt: skip
    done = run(command, cwd=work, environment=environment)
    assert done.returncode == 0, done.stderr


def with_build(data: bytes, *, platform: int | None = None, minimum: tuple[int, int] | None = None) -> bytes:
    """Return a thin library with another platform or oldest system in its LC_BUILD_VERSION, as vtool writes it."""
    place, changed = load_command(data, BUILD_VERSION), bytearray(data)
    if platform is not None:
        struct.pack_into("<I", changed, place + 8, platform)
    if minimum is not None:
        struct.pack_into("<I", changed, place + 12, minimum[0] << 16 | minimum[1] << 8)
    return bytes(changed)


def load_command(data: bytes, kind: int) -> int:
    place, (count,) = 32, struct.unpack_from("<I", data, 16)
    for _ in range(count):
        found, size = struct.unpack_from("<II", data, place)
        if found == kind:
            return place
        place += size
    raise StopIteration


def device_library() -> bytes:
    return sample(DEVICE)


def archive(members: Mapping[str, bytes]) -> bytes:
    """Return a static library as Apple's ar writes it: with long names, and an index."""
    content = bytearray(b"!<arch>\n")
    for name, data in {"__.SYMDEF SORTED": bytes(8), **members}.items():
        long = name.encode().ljust(-(-len(name) // 8) * 8 + 8, b"\0")
        body = long + data
        content += f"#1/{len(long):<13}{0:<12}{0:<6}{0:<6}{0o100644:<8o}{len(body):<10}`\n".encode() + body
        content += b"\n" * (len(body) % 2)
    return bytes(content)


PRIVACY: Final = {
    "NSPrivacyTracking": False,
    "NSPrivacyAccessedAPITypes": [
        {
            "NSPrivacyAccessedAPIType": "NSPrivacyAccessedAPICategorySystemBootTime",
            "NSPrivacyAccessedAPITypeReasons": ["35F9.1"],
        }
    ],
}
MODULE_MAP: Final = b'framework module onnxruntime {\n    header "onnxruntime_c_api.h"\n    export *\n}\n'
Files = dict[str, bytes | str]
"""What is in a folder: the content of each file, or, as text, what a symbolic link says."""


def plist(content: Mapping[str, Any]) -> bytes:
    return plistlib.dumps(dict(content))


def framework_plist(platform: str, key: str, minimum: str, **other: Any) -> dict[str, Any]:
    """Return what a framework's Info.plist says; `other` keys are added, or removed with None."""
    content: dict[str, Any] = {
        "CFBundleExecutable": "onnxruntime",
        "CFBundleIdentifier": "org.example.onnxruntime",
        "CFBundlePackageType": "FMWK",
        "CFBundleShortVersionString": "1.21.0",
        "CFBundleSupportedPlatforms": [platform],
        "CFBundleVersion": "1.21.0",
        key: minimum,
        **other,
    }
    return {name: value for name, value in content.items() if value is not None}


def flat_framework(binary: bytes, platform: str = "iPhoneOS") -> Files:
    return {
        "onnxruntime": binary,
        "Info.plist": plist(framework_plist(platform, "MinimumOSVersion", "15.1")),
        "PrivacyInfo.xcprivacy": plist(PRIVACY),
        "Headers/onnxruntime_c_api.h": b"/* */\n",
        "Modules/module.modulemap": MODULE_MAP,
    }


def mac_framework(binary: bytes) -> Files:
    flat = flat_framework(binary)
    files: Files = {f"Versions/A/{name}": flat[name] for name in ("onnxruntime", HEADER, "Modules/module.modulemap")}
    files["Versions/A/Resources/Info.plist"] = plist(framework_plist("MacOSX", "LSMinimumSystemVersion", "13.4"))
    files["Versions/Current"] = "A"
    return files | {name: f"Versions/Current/{name}" for name in ("onnxruntime", "Headers", "Modules", "Resources")}


def entry(identifier: str, library: str = "onnxruntime.framework", **other: Any) -> dict[str, Any]:
    platform, architectures, *variant = identifier.split("-")
    found = [{"x86": "x86_64", "64": ""}.get(name, name) for name in architectures.split("_")]
    return {
        "LibraryIdentifier": identifier,
        "LibraryPath": library,
        "SupportedArchitectures": [name for name in found if name],
        "SupportedPlatform": platform,
        **({"SupportedPlatformVariant": variant[0]} if variant else {}),
        **other,
    }


def xcframework_plist(*entries: dict[str, Any], **other: Any) -> bytes:
    content = {
        "AvailableLibraries": list(entries),
        "CFBundlePackageType": "XFWK",
        "XCFrameworkFormatVersion": "1.0",
        **other,
    }
    return plist(content)


DEVICE_SLICE, SIMULATOR_SLICE, MAC_SLICE = "ios-arm64", "ios-arm64_x86_64-simulator", "macos-arm64_x86_64"


def xcframework_files() -> Files:
    """Return a whole xcframework, which has every property: devices, simulators and Macs."""
    simulator = universal_file({name: sample(f"simulator-{name}.dylib") for name in ("arm64", "x86_64")})
    mac = universal_file({name: sample(f"macos-{name}.dylib") for name in ("arm64", "x86_64")})
    slices = {
        DEVICE_SLICE: flat_framework(device_library()),
        SIMULATOR_SLICE: flat_framework(simulator, "iPhoneSimulator"),
        MAC_SLICE: mac_framework(mac),
    }
    files: Files = {
        f"{identifier}/onnxruntime.framework/{name}": content
        for identifier, framework in slices.items()
        for name, content in framework.items()
    }
    return {"Info.plist": xcframework_plist(*map(entry, slices))} | files


def write_files(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            path.symlink_to(content)
        else:
            path.write_bytes(content)
    return folder


def zipped(files: Files, root: str = "onnxruntime.xcframework/") -> bytes:
    """Return a zip archive of files and links, as `zip -y` packs them."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            about = zipfile.ZipInfo(f"{root}{name}")
            kind = stat.S_IFLNK | 0o755 if isinstance(content, str) else stat.S_IFREG | 0o644
            about.external_attr, about.compress_type = kind << 16, zipfile.ZIP_DEFLATED
            opened.writestr(about, content)
    return buffer.getvalue()
