"""A sysroot for Android from a repository like bionic's, and libraries that the real compiler links against it."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from elf_frames import frames_of, functions_in
from ortrim.base.cache import cache_folder
from ortrim.base.command import run
from ortrim.base.files import shipped_folder
from ortrim.base.scripts import packages_folder
from ortrim.binaries.android import PAGE_BYTES, NativeLibrary
from ortrim.binaries.android_libraries import read_native_library
from ortrim.binaries.elf import add_unwind_tables, take_apart
from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.buildspec import AndroidSpec
from ortrim.buildspec.targets import ABIS, TARGETS
from ortrim.compiling.upstream_arguments import FRAMES, FRAMES_OF_LTO
from ortrim.compiling.workspace import BuildInputs, job_environment, prepare_workspace
from ortrim.pins.shipped import tool_requirements, tool_versions
from ortrim.platforms.android.arguments import LIBCXX, LINK, installation_lines, zig_android_toolchain
from ortrim.platforms.android.bionic import sysroot_of
from ortrim.platforms.android.jni import linker_flags
from own_caches import link_parts, zig_of_tests
from sample_plans import sample_plan

FILES: Final = {
    "libc/include/android/versioning.h": "#pragma once\n",
    "libc/include/sys/cdefs.h": "#pragma once\n#define __BEGIN_DECLS\n#define __END_DECLS\n",
    "libc/include/unistd.h": "#pragma once\nint getpid(void);\n#include <asm/page.h>\n",
    "libc/include/pthread.h": "#pragma once\nint pthread_self(void);\n",
    "libc/kernel/android/uapi/linux/compiler.h": "#pragma once\n",
    **{
        f"libc/kernel/uapi/asm-{machine}/asm/page.h": f'#define KERNEL_MACHINE "{machine}"\n'
        for machine in ("arm", "arm64", "x86")
    },
    "libc/private/bionic_asm.h": "#ifndef __ASSEMBLY__\n#error not for the assembler\n#endif\n",
    "libc/arch-common/bionic/crtbegin_so.c": (
        "extern void __cxa_finalize(void*);\n"
        '__attribute__((visibility("hidden"))) void* __dso_handle = &__dso_handle;\n'
        "__attribute__((destructor)) static void closed(void) { __cxa_finalize(&__dso_handle); }\n"
    ),
    "libc/arch-common/bionic/crtbegin.c": (
        "extern void __libc_init(void*, void*, int (*)(void), void*);\n"
        "int main(void);\n"
        "void _start(void) { __libc_init(0, 0, main, 0); }\n"
    ),
    "libc/arch-common/bionic/crtbrand.S": (
        "#include <private/bionic_asm.h>\n"
        '.section .note.android.ident,"a",%note\n.balign 4\n'
        '.long 8, 4, 1\n.ascii "Android\\0"\n.long PLATFORM_SDK_VERSION\n'
    ),
    "libc/arch-common/bionic/crtend_so.S": '.section .note.GNU-stack,"",%progbits\n',
    "libc/arch-common/bionic/crtend.S": '.section .note.GNU-stack,"",%progbits\n',
}


def tiny_bionic(folder: Path, pins: Path) -> None:
    """Commit the files into a new repository in `folder`, and pin it in the folder `pins` of the user's own pins."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    own = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false")
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        (*own, "commit", "-qm", "tiny"),
        ("config", "uploadpack.allowFilter", "1"),
    ):
        assert run(("git", "-C", folder, *words)).returncode == 0
    commit, tree = (run(("git", "-C", folder, "rev-parse", name)).stdout.strip() for name in ("HEAD", "HEAD^{tree}"))
    (pins / "android").mkdir(parents=True)
    (pins / "android" / "bionic.toml").write_text(
        f'repository = "file://{folder.with_suffix("")}"\ncommit = "{commit}"\ntree = "{tree}"\n'
    )


pytestmark = pytest.mark.network

SOURCE: Final = """\
#include <android/log.h>
#include <pthread.h>
#include <unistd.h>
#ifndef ANDROID
#error CMake files of the NDK define this
#endif
static _Thread_local int calls;
__attribute__((visibility("default"))) const char *machine(void) { return KERNEL_MACHINE; }
__attribute__((visibility("default"))) int asked(void) {
  __android_log_print(ANDROID_LOG_INFO, "tag", "%d", getpid());
  return ++calls;
}
__attribute__((visibility("default"))) float product(float a, float b) { return a * b; }
"""
TARGET_NAMES: Final = ("android-arm64-v8a", "android-armeabi-v7a", "android-x86_64", "android-x86")


@pytest.fixture(autouse=True)
def bionic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin a repository of our own, in a cache of its own that has the user's tools."""
    cache = tmp_path / "cache"
    cache.mkdir()
    link_parts(cache, {"packages": cache_folder("packages"), "tests": cache_folder("tests")})
    tiny_bionic(tmp_path / "bionic.git", tmp_path / "pins")
    monkeypatch.setenv("ORTRIM_CACHE", str(cache))
    monkeypatch.setenv("ORTRIM_PINS", str(tmp_path / "pins"))


def compiled(folder: Path, name: str, api: int, *flags: str) -> bytes:
    """Return a library, or a program, that the toolchain of a target compiles, with more flags, and links."""
    tools = packages_folder("tools", tool_requirements())
    toolchain = zig_android_toolchain(TARGETS[name], api, dict(tool_versions())["ziglang"])
    inputs = BuildInputs(
        sources=folder,
        tools=tools,
        runner=folder,
        hooks=shipped_folder("cmake"),
        installed=lambda known, _: {"bionic": sysroot_of(known)},
    )
    paths = prepare_workspace(folder / f"tree of {name}", inputs, toolchain, zig=zig_of_tests())
    environment = job_environment(paths, toolchain)
    paths.configured.mkdir()
    (paths.configured / "asked.c").write_text(SOURCE)
    compiling = ("-Os", *flags, "-fPIC", "-Werror", "-fvisibility=hidden", "-c", "asked.c")
    profile = "size" if "-flto" in flags else "balanced"
    job = sample_plan(name, android=AndroidSpec(api=api), profile=profile).targets[0].job
    frames = (FRAMES_OF_LTO,) if {"-flto", *FRAMES.split()} <= set(flags) else ()
    link = ("-s", *linker_flags(job), *LINK, *frames, "-nostdlib++", "-Wl,-soname,libasked.so")
    shared = ("-shared", PAST_DRIVER, *link)
    linking = ("cc", "-pie") if "main" in SOURCE else ("c++", *shared)
    for step in (("cc", *compiling), (*linking, "asked.o", "-o", "libasked.so")):
        done = run((str(paths.wrappers / step[0]), *step[1:]), cwd=paths.configured, environment=environment)
        assert done.returncode == 0, done.stderr
    return (paths.configured / "libasked.so").read_bytes()


def read(data: bytes, name: str) -> NativeLibrary:
    return read_native_library(data, f"jni/{ABIS[TARGETS[name].architecture]}/libasked.so", 1, 1)


@pytest.mark.parametrize("flags", [(), ("-flto",)], ids=["plain", "lto"])
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_a_library_is_linked_for_each_abi(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    """It says its level, has what Android's loader asks for, and needs nothing but Android's own libraries."""
    data = compiled(tmp_path, name, 24, *flags)
    library = read(data, name)
    assert library.built_for == library.abi
    assert library.api_level == 24
    assert set(library.facts.needed) == {"libc.so", "liblog.so"}
    assert set(library.facts.exported) == {"machine", "asked", "product"}
    assert {segment.alignment for segment in library.segments} == {PAGE_BYTES}
    assert library.build_id
    # Threads' variables are emulated: bionic has had others only since API level 29.
    assert {"__android_log_print", "getpid", "pthread_key_create"} <= {symbol.name for symbol in library.undefined}
    assert "__tls_get_addr" not in {symbol.name for symbol in library.undefined}
    machine = {"arm64": b"arm64", "arm": b"arm"}.get(TARGETS[name].architecture, b"x86")
    assert machine + b"\0" in data


@pytest.mark.parametrize("flags", [(), ("-flto",)], ids=["plain", "lto"])
@pytest.mark.parametrize("api", [29, 35])
def test_newer_levels_have_threads_variables_of_their_own(tmp_path: Path, api: int, flags: tuple[str, ...]) -> None:
    """What is compiled at once and what the linker compiles agree on that."""
    library = read(compiled(tmp_path, "android-arm64-v8a", api, *flags), "android-arm64-v8a")
    assert library.api_level == api
    assert "pthread_key_create" not in {symbol.name for symbol in library.undefined}


@pytest.mark.parametrize("api", [24, 29, 35])
@pytest.mark.parametrize("name", TARGET_NAMES)
def test_programs_find_their_libraries_when_they_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, api: int
) -> None:
    """CMake tries the compiler with one, and the runner loads the library; zig links them statically from 29 on."""
    monkeypatch.setitem(globals(), "SOURCE", "int main(void) { return 0; }\n")
    program = compiled(tmp_path, name, api)
    assert re.search(rb"/system/bin/linker(64)?\0", program)


def test_32_bit_arm_computes_with_its_fpu(tmp_path: Path) -> None:
    """Numbers are passed in core registers, as Android's rules are, and multiplied by an instruction."""
    library = read(compiled(tmp_path, "android-armeabi-v7a", 24), "android-armeabi-v7a")
    assert not [symbol.name for symbol in library.undefined if symbol.name.startswith("__aeabi_f")]


OF_THE_ABI: Final = """\
#if defined __x86_64__ && !(defined __SSE4_2__ && defined __POPCNT__) || defined __i386__ && !defined __SSSE3__
#error the ABI has these instructions
#endif
void *memcpy(void *, const void *, __SIZE_TYPE__);
__attribute__((visibility("default"))) int add(int *value) { return __atomic_fetch_add(value, 1, __ATOMIC_ACQ_REL); }
__attribute__((visibility("default"))) void copy(char *to, const char *from, long count) { memcpy(to, from, count); }
"""


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_what_the_abi_has_is_used_and_memory_is_copied_by_bionic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """No function of the compiler's is called for an atomic operation: its loop over bytes came with it as `memcpy`."""
    monkeypatch.setitem(globals(), "SOURCE", OF_THE_ABI)
    library = read(compiled(tmp_path, name, 24), name)
    assert {"memcpy", "__aeabi_memcpy"} & {symbol.name for symbol in library.undefined}
    mapped = tmp_path.glob("tree of */link.map")
    assert not [line for text in mapped for line in text.read_text().splitlines() if "aarch64_outline_atomics" in line]


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_each_abi_has_the_cpp_library_as_zig_configures_it(tmp_path: Path, name: str) -> None:
    """Its headers are read past zig's driver, which says by itself what it defines for them."""
    toolchain = zig_android_toolchain(TARGETS[name], 24, dict(tool_versions())["ziglang"])
    (tmp_path / "empty.cc").touch()
    (tmp_path / "libc.txt").write_text("".join(f"{line}\n" for line in installation_lines(str(sysroot_of(toolchain)))))
    zig = packages_folder("tools", tool_requirements()) / "ziglang" / "zig"
    environment = {**os.environ, "ZIG_LIBC": str(tmp_path / "libc.txt"), "ZIG_GLOBAL_CACHE_DIR": str(zig_of_tests())}
    words = ("c++", "-target", toolchain.triple, "-v", "-c", "empty.cc", "-o", "empty.o")
    done = run((zig, *words), cwd=tmp_path, environment=environment)
    assert done.returncode == 0, done.stderr
    said = re.findall(r"-D (_LIBC(?:PP|XXABI)_\S+)", done.stderr)
    assert {f"-D{word}" for word in said} == set(LIBCXX)


def test_a_name_that_came_later_is_no_part_of_the_stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that would not load on the level is not linked: `getrandom` came with 28."""
    monkeypatch.setitem(
        globals(),
        "SOURCE",
        'int getrandom(void); __attribute__((visibility("default"))) int f(void) { return getrandom(); }\n',
    )
    assert read(compiled(tmp_path, "android-arm64-v8a", 28), "android-arm64-v8a").api_level == 28
    with pytest.raises(AssertionError, match="undefined symbol: getrandom"):
        compiled(tmp_path / "older", "android-arm64-v8a", 27)


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_stripping_leaves_what_is_mapped(tmp_path: Path, name: str) -> None:
    """All that a loader sees stays in place; only the table of symbols is gone."""
    data = compiled(tmp_path, name, 24)
    linked, shipped, symbols = (tmp_path / part for part in ("linked", "shipped", "symbols"))
    linked.write_bytes(data)
    take_apart(linked, shipped, symbols)
    stripped = shipped.read_bytes()
    assert symbols.read_bytes() == data
    assert len(stripped) < len(data)
    assert b"\0.symtab\0" in data
    before, after = read(data, name), read(stripped, name)
    assert (after.segments, after.undefined) == (before.segments, before.undefined)
    assert after.facts == replace(before.facts, stripped=True)
    assert not before.facts.stripped
    end = max(segment.offset + segment.file_bytes for segment in before.segments)
    head = 0x40
    assert stripped[head:end] == data[head:end]
    take_apart(shipped, linked, symbols)
    assert linked.read_bytes() == stripped


@pytest.mark.parametrize(("name", "flags"), [*((name, ()) for name in TARGET_NAMES), (TARGET_NAMES[0], ("-flto",))])
def test_a_stripped_library_has_the_frames_of_its_functions(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    """For every ABI, and where the linker compiles; nothing that is loaded has become larger."""
    linked, shipped, symbols = (tmp_path / part for part in ("linked", "shipped", "symbols"))
    linked.write_bytes(compiled(tmp_path, name, 24, *flags, *FRAMES.split()))
    take_apart(linked, shipped, symbols)
    bare = shipped.read_bytes()
    add_unwind_tables(shipped, symbols)
    assert read(shipped.read_bytes(), name).segments == read(bare, name).segments
    functions = {place for label, place in functions_in(symbols) if label in {"machine", "asked", "product"}}
    assert len(functions) == 3
    assert functions <= {begin for begin, _ in frames_of(shipped)}


def test_a_sysroot_is_made_once(tmp_path: Path) -> None:
    """The second time nothing is fetched: the repository is gone."""
    toolchain = zig_android_toolchain(TARGETS["android-x86_64"], 24, dict(tool_versions())["ziglang"])
    made = sysroot_of(toolchain)
    (tmp_path / "bionic.git").rename(tmp_path / "gone")
    assert sysroot_of(toolchain) == made
    other = zig_android_toolchain(TARGETS["android-x86_64"], 30, dict(tool_versions())["ziglang"])
    assert sysroot_of(other) != made
