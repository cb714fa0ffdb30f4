"""Small libraries for Android: recorded under `tests/unit/binaries/data/android`, and how zig links them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import run

RECORDED: Final = Path(__file__).parents[1] / "unit" / "binaries" / "data" / "android"
TRIPLES: Final = {
    "arm64-v8a": "aarch64-linux-android",
    "armeabi-v7a": "arm-linux-androideabi",
    "x86_64": "x86_64-linux-android",
    "x86": "x86-linux-android",
}
RUNTIME: Final = "libonnxruntime.so"
BINDING: Final = "libonnxruntime4j_jni.so"
CXX: Final = "libc++_shared.so"

STUBS: Final = {
    "libc.so": ("LIBC { global: access; gnu_get_libc_version; local: *; }; LIBC_O { global: strtod_l; } LIBC;"),
    "libdl.so": "LIBC { global: dlopen; local: *; };",
    "libneuralnetworks.so": "LIBNEURALNETWORKS { global: ANeuralNetworks_getDeviceCount; local: *; };",
    "libvendor.so": "{ global: vendor_call; local: *; };",
    "libc++_shared.so": "{ global: __cxa_begin_catch; local: *; };",
}
"""Libraries to link against: the version script of each, which names all that it has."""
SOURCE: Final = """
#define PUBLIC __attribute__((visibility("default")))
int access(const char *, int); int strtod_l(void); int gnu_get_libc_version(void); void *dlopen(const char *, int);
int ANeuralNetworks_getDeviceCount(void); int vendor_call(void); int __cxa_begin_catch(void);
#ifdef API
__attribute__((section(".note.android.ident"), used, aligned(4))) static const struct {
  int name_bytes, content_bytes, kind; char name[8]; int level; char ndk[64], build[64];
} note = {8, 132, 1, "Android", API, "r27c", "12479018"};
#endif
#ifdef CXX
PUBLIC int __cxa_begin_catch(void) { return access("", 0); }
#elif defined BINDING
PUBLIC const int *OrtGetApiBase(void);
PUBLIC int Java_ai_onnxruntime_OnnxRuntime_initialiseAPIBase(void) { return *OrtGetApiBase(); }
PUBLIC int Java_ai_onnxruntime_OnnxRuntime_overloaded__I(void) { return 1; }
PUBLIC int Java_ai_onnxruntime_OnnxRuntime_overloaded___3Ljava_lang_String_2(void) { return access("", 0); }
#else
static const int table[2] = {1, 2};
static const int *const pointers[2] = {table, table + 1};
static int counter = 1;
#ifndef CALL
#define CALL 0
#endif
#ifndef TEXT
#define TEXT "text"
#endif
#ifdef CROOKED
__asm__(".text\\n.p2align 3\\n.quad OrtGetApiBase");
#endif
PUBLIC const int *OrtGetApiBase(void) {
  access(TEXT, 0);
  dlopen(TEXT, 1);
  counter += CALL;
  return pointers[++counter & 1];
}
#endif
"""
EXPORTS: Final = "VERS_1.21.0 { global: OrtGetApiBase; local: *; };"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A library: the file it is recorded in, its ABI, its name, what it is compiled with, and what it needs."""

    file: str
    abi: str = "arm64-v8a"
    name: str = RUNTIME
    words: tuple[str, ...] = ()
    needed: tuple[str, ...] = ("libc.so", "libdl.so")
    api: int | None = 24
    page_bytes: int = 16384
    relro_bytes: int = 16384
    stripped: bool = True
    build_id: str = "sha1"
    soname: str = RUNTIME


SAMPLES: Final = (
    *(Sample(file=f"{abi}-{RUNTIME}", abi=abi) for abi in TRIPLES),
    *(
        Sample(
            file=f"{abi}-{BINDING}", abi=abi, name=BINDING, soname=BINDING, words=("-DBINDING",), needed=("libc.so",)
        )
        for abi in TRIPLES
    ),
    *(
        Sample(
            file=f"{abi}-{CXX}", abi=abi, name=CXX, soname=CXX, words=("-DCXX",), needed=("libc.so",), relro_bytes=4096
        )
        for abi in TRIPLES
    ),
    Sample(file="needs-cxx.so", words=("-DCALL=__cxa_begin_catch()",), needed=("libc.so", "libdl.so", CXX)),
    Sample(file="small-pages.so", page_bytes=4096, relro_bytes=4096),
    Sample(file="relro-in-mid-page.so", relro_bytes=4096),
    Sample(file="unstripped.so", stripped=False),
    Sample(file="no-build-id.so", build_id="none"),
    Sample(file="versioned-name.so", soname="libonnxruntime.so.1"),
    Sample(file="nameless.so", soname=""),
    Sample(file="text-relocations.so", words=("-DCROOKED", "-Wl,-z,notext")),
    Sample(file="unknown-symbol.so", words=("-DCALL=gnu_get_libc_version()",)),
    Sample(file="new-symbol.so", words=("-DCALL=strtod_l()",)),
    Sample(
        file="new-library.so",
        words=("-DCALL=ANeuralNetworks_getDeviceCount()",),
        needed=("libc.so", "libdl.so", "libneuralnetworks.so"),
    ),
    Sample(file="vendor.so", words=("-DCALL=vendor_call()",), needed=("libc.so", "libdl.so", "libvendor.so")),
    Sample(file="new-api.so", api=30),
    Sample(file="no-note.so", api=None),
    Sample(file="new-hash.so", words=("-Wl,--hash-style=gnu",)),
    Sample(file="source-path.so", words=('-DTEXT="/home/builder/onnxruntime/core/session.cc"',)),
)


def sample(file: str) -> bytes:
    return (RECORDED / file).read_bytes()


def link_samples(zig: Path, folder: Path, work: Path) -> None:
    (work / "source.c").write_text(SOURCE)
    (work / "exports.map").write_text(EXPORTS)
    for abi in TRIPLES:
        (work / abi).mkdir()
        for name, script in STUBS.items():
            _link_stub(zig, abi, name, script, work)
    for each in SAMPLES:
        _link(zig, each, work)
        (work / "linked.so").replace(folder / each.file)
        if each.name == RUNTIME and each.file.startswith(each.abi):
            (work / each.abi / RUNTIME).write_bytes((folder / each.file).read_bytes())


def _link_stub(zig: Path, abi: str, name: str, script: str, work: Path) -> None:
    names = [
        word for part in script.split("global:")[1:] for word in part.split("}")[0].replace("local: *;", "").split(";")
    ]
    (work / "stub.c").write_text(
        "".join(f"int {word.strip()}(void) {{ return 0; }}\n" for word in names if word.strip())
    )
    (work / "stub.map").write_text(script)
    words = (f"-Wl,-soname,{name}", "-Wl,--version-script=stub.map", "stub.c", "-o", f"{abi}/{name}")
    _run(zig, abi, work, ("-fno-builtin", *words))


def _link(zig: Path, each: Sample, work: Path) -> None:
    libraries = [f"{each.abi}/{name}" for name in each.needed]
    words = [
        *each.words, "-O1", "-fvisibility=hidden", "-fno-builtin", "source.c", *libraries,
        f"-Wl,-z,max-page-size={each.page_bytes}", f"-Wl,-z,common-page-size={each.relro_bytes}",
        f"-Wl,--build-id={each.build_id}",
        *(["-s"] if each.stripped else []),
        *([f"-DAPI={each.api}"] if each.api is not None else []),
        *([f"-Wl,-soname,{each.soname}"] if each.soname else []),
        *([f"{each.abi}/{RUNTIME}"] if each.name == BINDING else []),
        *(["-Wl,--version-script=exports.map"] if each.name == RUNTIME else []),
    ]  # fmt: skip
    _run(zig, each.abi, work, (*words, "-o", "linked.so"))


def _run(zig: Path, abi: str, work: Path, words: Sequence[str]) -> None:
    environment = {"ZIG_LOCAL_CACHE_DIR": str(work / "zig"), "ZIG_GLOBAL_CACHE_DIR": str(work / "zig"), "PATH": ""}
    command = (
        str(zig),
        "cc",
        "-target",
        TRIPLES[abi],
        "-nostdlib",
        "-shared",
        "-fPIC",
        "-g0",
        *words,
    )
    done = run(command, cwd=work, environment=environment)
    assert done.returncode == 0, done.stderr
