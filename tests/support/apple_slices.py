"""Small libraries for Apple's systems: recorded under `tests/unit/platforms/apple/data/slices`, and how zig links them.

They are what Xcode would link, but for their size: against a stub of a library of the system, with the load commands
that say which system they are for. `integration/test_apple_assembly.py` links them anew. Without the stub, zig 0.17
crashes when it links for iOS, of which it carries no libraries.
"""

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import lief

from ortrim.base.command import run

RECORDED: Final = Path(__file__).parents[1] / "unit" / "platforms" / "apple" / "data" / "slices"
TRIPLES: Final = {
    "ios-arm64": "aarch64-ios.15.1",
    "ios-simulator-arm64": "aarch64-ios.15.1-simulator",
    "ios-simulator-x86_64": "x86_64-ios.15.1-simulator",
    "macos-arm64": "aarch64-macos.13.3",
    "macos-x86_64": "x86_64-macos.13.3",
    "maccatalyst-arm64": "aarch64-maccatalyst.15.1",
}
"""Target of ours -> zig's; the versions are those of `sample_plans`."""
VERSIONED: Final = ("macos-arm64", "macos-x86_64", "maccatalyst-arm64")
STUB: Final = """\
--- !tapi-tbd
tbd-version:     4
targets:         [ {targets} ]
install-name:    '/usr/lib/system/libsystem_kernel.dylib'
current-version: 1
exports:
  - targets:         [ {targets} ]
    symbols:         [ {symbols} ]
...
"""
STUB_TARGETS: Final = (
    "arm64-ios", "arm64-ios-simulator", "x86_64-ios-simulator", "arm64-macos", "x86_64-macos", "arm64-maccatalyst",
)  # fmt: skip
SYMBOLS: Final = ("_stat", "'_stat$INODE64'", "_mach_absolute_time", "_statfs", "_clock_gettime", "dyld_stub_binder")
SOURCE: Final = """
#ifdef __x86_64__
int stat(const char *, void *) __asm("_stat$INODE64");
#else
int stat(const char *, void *);
#endif
int statfs(const char *, void *); int clock_gettime(int, void *); unsigned long long mach_absolute_time(void);
#ifndef CALL
#define CALL stat("", 0) + (int)mach_absolute_time()
#endif
__attribute__((visibility("default"))) int OrtGetApiBase(void) { return CALL; }
"""


def recorded(target: str) -> bytes:
    return (RECORDED / f"{target}.dylib").read_bytes()


def is_truly_signed(library: bytes) -> bool:
    """Whether an ad hoc signature has the digest of each page of what is before it (Apple's kern/cs_blobs.h)."""
    start = library.rindex(b"\xfa\xde\x0c\xc0")
    place = start + struct.unpack_from(">I", library, start + 16)[0]
    hashes, _, _, pages, covered, power = struct.unpack_from(">5I3xB", library, place + 16)
    content = library[:covered]
    digests = b"".join(hashlib.sha256(content[at : at + (1 << power)]).digest() for at in range(0, covered, 1 << power))
    return covered == start and digests == library[place + hashes : place + hashes + 32 * pages]


def function_at(symbols: bytes, address: int) -> str:
    """Return the function in which an address lies, as debuggers find it by a dSYM without DWARF: the nearest name."""
    return max((value, name) for value, name in _symbols(symbols) if value <= address)[1]


def address_of(symbols: bytes, name: str) -> int:
    return {found: value for value, found in _symbols(symbols)}[name]


def initializers(library: bytes) -> tuple[int, ...]:
    """Return the addresses of the functions that the loader calls first, as the library's file has them."""
    parsed = lief.MachO.parse(library)
    binary = parsed.at(0) if parsed else None
    section = binary.get_section("__mod_init_func") if binary else None
    content = bytes(section.content) if section else b""
    return struct.unpack(f"<{len(content) // 8}Q", content)


def _symbols(data: bytes) -> list[tuple[int, str]]:
    parsed = lief.MachO.parse(data)
    binary = parsed.at(0) if parsed else None
    return [(each.value, str(each.name)) for each in binary.symbols] if binary else []


def install_name(target: str) -> str:
    return f"@rpath/onnxruntime.framework/{'Versions/A/' if target in VERSIONED else ''}onnxruntime"


def link_slice(zig: Path, target: str, work: Path, *words: str, name: str = "") -> bytes:
    stub = work / "libSystem.tbd"
    stub.write_text(STUB.format(targets=", ".join(STUB_TARGETS), symbols=", ".join(SYMBOLS)))
    compiled, linked = work / f"{target}.o", work / f"{target}.dylib"
    compile_slice(zig, target, work, compiled, *words)
    named = ("-install_name", name or install_name(target))
    options = ("-nostdlib", "-shared", "-fno-builtin", "--sysroot", str(work))
    _run(zig, target, work, (*options, str(compiled), str(stub), *named, "-o", str(linked)))
    return linked.read_bytes()


def compile_slice(zig: Path, target: str, work: Path, destination: Path, *words: str) -> None:
    (work / "source.c").write_text(SOURCE)
    options = ("-ffreestanding", "-fno-builtin", "-Os", "-g0", "-fvisibility=hidden", "-fno-sanitize=all")
    _run(zig, target, work, (*options, *words, "-c", "source.c", "-o", str(destination)))


def link_slices(zig: Path, folder: Path, work: Path) -> None:
    for target in TRIPLES:
        (folder / f"{target}.dylib").write_bytes(link_slice(zig, target, work))


def _run(zig: Path, target: str, work: Path, words: Sequence[str]) -> None:
    environment = {"ZIG_LOCAL_CACHE_DIR": str(work / "zig"), "ZIG_GLOBAL_CACHE_DIR": str(work / "zig"), "PATH": ""}
    done = run((str(zig), "cc", "-target", TRIPLES[target], *words), cwd=work, environment=environment)
    assert done.returncode == 0, done.stderr
