"""Compilers: the hermetic zig (clang, lld, libc++, glibc stubs) and the system's, and the wrappers that reach them."""

import hashlib
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from ortrim.base.command import run
from ortrim.buildspec.build_options import PAST_DRIVER
from ortrim.buildspec.targets import Architecture, CLibrary, Target, zig_cpu
from ortrim.compiling.plan import Toolchain
from ortrim.errors import ToolError

TRIAL: Final = """\
case "$PWD" in "${{ORTRIM_BUILD}}/CMakeFiles/"*)
  set -- "$@" -fno-sanitize=undefined
  case " $* " in
  *" -c "*|*" -E "*|*" -S "*) ;;
  *) set -- "$@" {runtime}
  if {{ said=$({command} {maps} "$@" -nostdlib++ 2>&1 >&3); }} 3>&1; then
    [ -z "$said" ] || printf '%s\\n' "$said" >&2
    exit 0
  fi ;;
  esac ;;
esac
"""
RUNTIME: Final = "-Os -s -fasynchronous-unwind-tables"
"""What has zig link a program with the runtime that the library is linked with: it compiles one for each choice."""


def trial(command: str, maps: str) -> str:
    """Return the part of a wrapper for CMake's try_compile; `command` compiles with `maps`, both in shell syntax."""
    return TRIAL.format(command=command, maps=maps, runtime=RUNTIME)


PREFIX_MAPS: Final = (
    '-ffile-prefix-map="$ORTRIM_SOURCES"=. -ffile-prefix-map="$ORTRIM_BUILD"=.'
    ' ${ORTRIM_SOURCES_HERE:+-ffile-prefix-map="$ORTRIM_SOURCES_HERE"=.}'
)

PRINT_MAP: Final = "-Wl,--print-map"
"""Asks lld, through zig, for a link map on standard output; `-Map` is refused by zig's driver."""


PRECOMPILED_MARK: Final = "-DORTRIM_PRECOMPILED="
"""Marks the compilations that use a precompiled header, by the header's name and a kind; from `precompiled.cmake`."""

PRECOMPILING: Final = """\
precompile() {{
  before=
  for argument do
    shift
    case "$before$argument" in
    -isystem*|-D*|-I*|-O*|-U*|-X*|-f*|-g*|-m*|-pthread|-std=*|-W*|--target=*|--sysroot=*) set -- "$@" "$argument" ;;
    esac
    before=
    case "$argument" in -isystem) before=$argument ;; esac
  done
  {command} {maps} "$@" -Xclang -fno-pch-timestamp -fpch-instantiate-templates -x c++-header \
"$ORTRIM_PRECOMPILED_HEADERS/${{kind%%-*}}.h" -o "$header.$$" && mv "$header.$$" "$header"
}}
kind=
case " $* " in
*" -E "*) ;;
*" {mark}"*) kind=" $*"; kind="${{kind#*" {mark}"}}"; kind="${{kind%% *}}" ;;
esac
if [ -n "$kind" ]; then
  case " $* " in *" -pthread "*) kind="$kind-pthread" ;; esac
  header="$ORTRIM_BUILD/precompiled-$kind.pch"
  [ -f "$header" ] || precompile "$@" || exit
  set -- -include-pch "$header" "$@"
fi
"""


def compiler_wrapper(
    identity: str,
    command: str,
    rewrites: tuple[tuple[str, str], ...] = (),
    *,
    precompiles: bool = False,
    linking: str = "",
    quick_trials: bool = False,
    preparing: str = "",
) -> str:
    """Return the text of a compiler's wrapper.

    `identity` names the compiler and its version; `command` is what the wrapper runs, in shell syntax, after
    `preparing`; `rewrites` are (argument, replacement) pairs; `linking` is the part that reaches the linker past the
    compiler; `quick_trials` is for a clang that would compile its C++ library for CMake's try_compile. A link map on
    standard output goes to `$ORTRIM_LINK_MAP`.

    A clang that `precompiles` reads marked sources with a header of `$ORTRIM_PRECOMPILED_HEADERS` in front, which the
    first of each mark compiles: clang takes a header only for sources of the same target, optimisation and threads.
    When its files were written does not count, as a tree's never change: ONNX's generator writes some of them again
    when another interpreter of Python builds on the tree.
    Preprocessing (`-E`) goes without, so that the compiler cache sees the whole text.
    """
    cases = "".join(f'    {old}) set -- "$@" {new} ;;\n' for old, new in rewrites)
    rewriting = (
        f'for argument do\n  shift\n  case "$argument" in\n{cases}    *) set -- "$@" "$argument" ;;\n  esac\ndone\n'
    )
    return (
        f"#!/bin/sh\n# {identity}\n{preparing}"
        f"{rewriting if rewrites else ''}"
        f'case " $* " in *" {PRINT_MAP} "*) exec >"$ORTRIM_LINK_MAP" ;; esac\n'
        f"{PRECOMPILING.format(command=command, maps=PREFIX_MAPS, mark=PRECOMPILED_MARK) if precompiles else ''}"
        f"{linking}"
        f"{trial(command, PREFIX_MAPS) if quick_trials else ''}"
        f'exec {command} {PREFIX_MAPS} "$@"\n'
    )


def tool_wrapper(identity: str, command: str) -> str:
    """Return the text of the wrapper of an archiver or another tool that takes its arguments as they are."""
    return f'#!/bin/sh\n# {identity}\nexec {command} "$@"\n'


def launcher(identity: str, wrapper: str) -> str:
    """Return the text of what CMake calls before a compiler that it chooses itself, to put the wrapper there."""
    return (
        f"#!/bin/sh\n# {identity}\n"
        'case "${1##*/}" in\n'
        f'clang|clang++) shift; exec "${{0%/*}}/{wrapper}" "$@" ;;\n'
        f'*) cache="$1"; shift 2; exec "$cache" "${{0%/*}}/{wrapper}" "$@" ;;\n'
        "esac\n"
    )


LINKING: Final = """\
words() {{
  printf '%s\\n' "${{1% }}" | sed 's| \\([-/]\\)|\\
\\1|g'
}}
link() {{
  set -f
  plus=
  case " $* " in *" -nostdlib++ "*) plus=-nostdlib++ ;; esac
  : >ortrim-probe.cc
  {command} -c ortrim-probe.cc -o ortrim-probe.o || exit
  line=$({command} $plus -v -Os -s -shared ortrim-probe.o {libraries}-o ortrim-probe.so 2>&1 |
    grep "^ld.lld .* ortrim-probe.o ")
  rm -f ortrim-probe.cc ortrim-probe.o ortrim-probe.so
  [ -n "$line" ] || {{ echo "zig does not say how it links" >&2; exit 1; }}
  for argument do
    shift
    case "$argument" in
    -Wl,*) IFS=,; set -- "$@" ${{argument#-Wl,}}; unset IFS ;;
    -D*|-O*|-W*|-X*|-f*|-g|-g[0-9]*|-l*|-m*|-nostdlib++|-pthread|-s|-std=*) ;;
    *) set -- "$@" "$argument" ;;
    esac
  done
  before="${{line#* -o ortrim-probe.so }}"
  before="${{before%%ortrim-probe.o *}}"
  IFS='
'
  set -- $(words "$before") "$@" $(words "${{line#* ortrim-probe.o }}")
  unset IFS
  for argument do
    shift
    case "$argument" in */libcompiler_rt.a)
      {program} ld.lld -r --gc-sections --strip-debug {arithmetic} "$argument" -o compiler_rt.o || exit
      set -- "$@" compiler_rt.o ;;
    esac
    set -- "$@" "$argument"
  done
  head="${{line%% -o ortrim-probe.so *}}"
  case "$head" in *" -s "*) head="${{head%% -s *}} ${{head#* -s }}" ;; esac
  exec {program} ld.lld ${{head#ld.lld}} "$@"
}}
case " $* " in *" {mark} "*) link "$@" ;; esac
"""
"""An empty object is linked as a probe. Paths may have spaces, none of which is at the end of a folder's name. The word
`-s` is taken out: lld has no other against it.

zig's runtime is one object, with a `memcpy` that is a loop over bytes, `sqrtf` and others beside its arithmetic. A link
that needs any of it would take those in place of the C library's, and half of the time to load a model would go with
them. So `ARITHMETIC` is put in front as an object of its own.
"""
NAMES: Final = """
ashldi3 ashlti3 ashrdi3 ashrti3 lshrdi3 lshrti3 muldi3 multi3 mulodi4 muloti4 clzdi2 clzti2 ctzdi2 ctzti2
divdi3 divti3 moddi3 modti3 udivdi3 udivti3 umoddi3 umodti3 divmodti4 udivmodti4 popcountdi2 popcountti2
addtf3 subtf3 multf3 divtf3 negtf2 eqtf2 netf2 lttf2 letf2 gttf2 getf2 unordtf2
extendsftf2 extenddftf2 trunctfsf2 trunctfdf2 fixtfsi fixtfdi fixtfti fixunstfsi fixunstfdi fixunstfti
floatsitf floatditf floattitf floatunsitf floatunditf floatuntitf
fixsfti fixdfti fixunssfti fixunsdfti floattisf floattidf floatuntisf floatuntidf
fixsfdi fixdfdi fixunssfdi fixunsdfdi floatdisf floatdidf floatundisf floatundidf
extendhfsf2 truncsfhf2 truncdfhf2 truncsfbf2 truncdfbf2 gnu_h2f_ieee gnu_f2h_ieee muldc3 mulsc3 divdc3 divsc3
aeabi_ldivmod aeabi_uldivmod aeabi_lmul aeabi_llsl aeabi_llsr aeabi_lasr aeabi_lcmp aeabi_ulcmp
aeabi_idiv aeabi_uidiv aeabi_idivmod aeabi_uidivmod aeabi_l2f aeabi_l2d aeabi_ul2f aeabi_ul2d
aeabi_f2lz aeabi_d2lz aeabi_f2ulz aeabi_d2ulz aeabi_h2f aeabi_f2h aeabi_d2h
aeabi_unwind_cpp_pr0 aeabi_unwind_cpp_pr1 aeabi_unwind_cpp_pr2 emutls_get_address
"""
ARITHMETIC: Final = tuple(f"__{name}" for name in NAMES.split())
"""What compilers call for numbers that a processor has no instructions for; a linker passes over what is not there."""


def linking(program: str, command: str, libraries: str = "", calls: tuple[str, ...] = ()) -> str:
    """Return the part of a wrapper that links past the driver when it is asked to; `command` compiles.

    `libraries` are the driver's words for those wanted beside the C library, `calls` what is called of the compiler's
    runtime beside arithmetic. The linker leaves symbols and frames in that it is not asked to leave out.
    """
    arithmetic = " ".join(f"-u {name}" for name in (*ARITHMETIC, *calls))
    asked = f"{libraries} " if libraries else ""
    words = {"program": program, "command": command, "mark": PAST_DRIVER, "arithmetic": arithmetic}
    return LINKING.format(libraries=asked, **words)


MACHINE: Final = {
    Architecture.X64: "x86_64", Architecture.ARM64: "aarch64", Architecture.ARM: "arm",
    Architecture.RISCV64: "riscv64",
}  # fmt: skip
FLOAT_ABI: Final = {Architecture.ARM: "eabihf"}

PROGRAM: Final = '"$ORTRIM_COMPILER_CXX"'
DRIVER: Final = '"${0%/*}/driver"'
COMPILER_VARIABLES: Final = ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")
LEVELS: Final = (("-Oz", "-Os -Xclang -Oz"), ("-O3", "-O2 -Xclang -O3"))
"""zig replaces -Os by -Oz, and -O2 by -O3, unless the flag goes to clang itself."""
ARM64_FEATURES: Final = (
    ("-march=armv8.2-a+fp16", "+v8_2a+fullfp16"),
    ("-march=armv8.2-a+bf16", "+v8_2a+bf16"),
    ("-march=armv8.2-a+dotprod", "+v8_2a+dotprod"),
    ("-march=armv8.2-a+i8mm", "+v8_2a+i8mm"),
)
"""What upstream asks for in single files of kernels that are chosen at run time, and clang's names of it.

zig refuses `-march` with extensions and wants them in `-mcpu`, where they come on top of the baseline.
"""
ARM_REWRITES: Final = (("-mfpu=neon", ""),)
"""Upstream's one flag for ARMv7; the `-mcpu` of every baseline has NEON already."""


def zig_toolchain(target: Target, minimum_glibc: str, version: str, cpu: str | None = None) -> Toolchain:
    """Return the toolchain for a Linux target that loads on `minimum_glibc`, empty for musl, and newer, on a `cpu`."""
    triple = _triple(target, minimum_glibc)
    baseline = zig_cpu(target.architecture, cpu)
    options = f"-mcpu={baseline}" if baseline else ""
    return zig_for(triple, version, _rewrites(target.architecture, baseline), options, with_lld=True)


@dataclass(frozen=True, kw_only=True)
class Sysroot:
    """A C library in place of zig's own, if it has one: what pins it, where a job has it, and how zig is told so.

    `variable` is of the environment, its value a symbolic path; `preparing` is what a wrapper does first, and
    `libraries` are the words for those that are wanted beside the C library, both in shell syntax. `calls` are what
    zig's C++ library calls of the compiler's runtime, beside arithmetic.
    """

    identity: str
    variable: tuple[str, str]
    preparing: str
    libraries: str = ""
    calls: tuple[str, ...] = ()


LIBC_FILE: Final = """\
ZIG_LIBC="${0%/*}/libc.txt"
export ZIG_LIBC
[ -f "$ZIG_LIBC" ] || {
  printf '%s\\n' LINES >"$ZIG_LIBC.$$" && mv "$ZIG_LIBC.$$" "$ZIG_LIBC"
} || exit
"""
"""Tells zig where the C library is, in a file beside the wrapper, which is made where the job runs."""


def zig_for(
    triple: str,
    version: str,
    rewrites: tuple[tuple[str, str], ...],
    options: str = "",
    *,
    with_lld: bool = False,
    sysroot: Sysroot | None = None,
    driver: str = "",
) -> Toolchain:
    """Return zig as the toolchain for a triple; `with_lld` where its linker is lld and its C++ library its own.

    `options` come behind the triple. `driver` is the text of a wrapper that is called with `cc` or `c++` where zig's
    own driver will not do; its digest is in every wrapper, whose text is what a compiler cache takes for the compiler.
    """
    words = f"{triple} {options}".rstrip()
    by_driver = (f"driver {hashlib.sha256(driver.encode()).hexdigest()[:12]}",) if driver else ()
    identity = " ".join(("zig", version, words, *((sysroot.identity,) if sysroot else ()), *by_driver))
    start = ('"$ORTRIM_COMPILER_C" cc', f"{PROGRAM} c++") if not driver else (f"{DRIVER} cc", f"{DRIVER} c++")
    cc, cxx = (command if driver else f"{command} -target {words}" for command in start)
    beside = (sysroot.libraries, sysroot.calls) if sysroot else ()
    links = linking(PROGRAM, cxx, *beside) if with_lld else ""
    preparing = sysroot.preparing if sysroot else ""
    quick = with_lld or sysroot is not None
    return Toolchain(
        kind="zig",
        version=version,
        triple=triple,
        environment=(
            *((name, "${tools}/ziglang/zig") for name in COMPILER_VARIABLES),
            *((sysroot.variable,) if sysroot else ()),
        ),
        wrappers=(
            ("cc", compiler_wrapper(identity, cc, rewrites, quick_trials=quick, preparing=preparing)),
            (
                "c++",
                compiler_wrapper(
                    identity, cxx, rewrites, precompiles=True, linking=links, quick_trials=quick, preparing=preparing
                ),
            ),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR" ar')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB" ranlib')),
            *((("driver", f"#!/bin/sh\n# {identity}\n{driver}"),) if driver else ()),
        ),
    )


def _triple(target: Target, minimum_glibc: str) -> str:
    abi = FLOAT_ABI.get(target.architecture, "")
    if target.c_library is CLibrary.MUSL:
        return f"{MACHINE[target.architecture]}-linux-musl{abi}"
    return f"{MACHINE[target.architecture]}-linux-gnu{abi}.{minimum_glibc}"


def _rewrites(architecture: Architecture, baseline: str) -> tuple[tuple[str, str], ...]:
    match architecture:
        case Architecture.ARM64:
            return (*LEVELS, *((old, f"-mcpu={baseline or 'generic'}{features}") for old, features in ARM64_FEATURES))
        case Architecture.ARM:
            return (*LEVELS, *ARM_REWRITES)
        case _:
            return LEVELS


PROGRAMS: Final = {"gcc": ("gcc", "g++"), "clang": ("clang", "clang++")}
MINIMUM_MAJOR: Final = {"gcc": 11, "clang": 14}
SMALLEST_SINCE: Final = 12
"""The first gcc with `-Oz`: to gcc 11 the argument is an error, and `-Os` is the smallest that it has."""
INSTALL: Final = {"gcc": "apt-get install g++", "clang": "apt-get install clang"}


def system_toolchain(kind: Literal["gcc", "clang"]) -> Toolchain:
    """Return the toolchain of a compiler found on `PATH`, which compiles for this machine only."""
    programs = (*PROGRAMS[kind], "ar", "ranlib")
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        hint = f'install it ({INSTALL[kind]}) or use compiler = "zig", which needs nothing installed'
        what, why = "the buildspec names this compiler, and it is not on PATH", f"not there: {', '.join(missing)}"
        raise ToolError("compiler-missing", what, where=kind, why=why, hint=hint)
    version = _version(kind, programs[0])
    identity = f"{kind} {version}"
    rewrites = (("-Oz", "-Os"),) if kind == "gcc" and _major(version) < SMALLEST_SINCE else ()
    return Toolchain(
        kind=kind,
        version=version,
        triple="",
        environment=tuple(zip(COMPILER_VARIABLES, programs, strict=True)),
        wrappers=(
            ("cc", compiler_wrapper(identity, '"$ORTRIM_COMPILER_C"', rewrites)),
            ("c++", compiler_wrapper(identity, '"$ORTRIM_COMPILER_CXX"', rewrites, precompiles=kind == "clang")),
            ("ar", tool_wrapper(identity, '"$ORTRIM_AR"')),
            ("ranlib", tool_wrapper(identity, '"$ORTRIM_RANLIB"')),
        ),
    )


def _version(kind: Literal["gcc", "clang"], program: str) -> str:
    printed = run((program, "--version"), timeout_seconds=30).stdout
    first = re.sub(r"\([^)]*\)", "", next(iter(printed.splitlines()), ""))  # in brackets is what the distribution says
    found = re.search(r"\d+\.\d+(\.\d+)?", first)
    if found is None or _major(found.group()) < MINIMUM_MAJOR[kind]:
        what = f"version {MINIMUM_MAJOR[kind]} or newer is needed"
        hint = f'install a newer one ({INSTALL[kind]}) or use compiler = "zig"'
        raise ToolError("compiler-too-old", what, where=program, why=f"it says: {printed[:80]!r}", hint=hint)
    return found.group()


def _major(version: str) -> int:
    return int(version.split(".", maxsplit=1)[0])


LLVM: Final = "Apache-2.0 WITH LLVM-exception"
CXX_RUNTIME: Final = (
    ("libc++", LLVM, "ziglang/lib/libcxx/LICENSE.TXT"),
    ("libc++abi", LLVM, "ziglang/lib/libcxxabi/LICENSE.TXT"),
    ("libunwind", LLVM, "ziglang/lib/libunwind/LICENSE.TXT"),
)
RUNTIME_LICENCES: Final[Mapping[str, tuple[tuple[str, str, str], ...]]] = MappingProxyType({
    "zig": (*CXX_RUNTIME, ("compiler-rt", "MIT", "ziglang/LICENSE")),
    "ndk": (*CXX_RUNTIME, ("compiler-rt", LLVM, "ziglang/lib/libcxx/LICENSE.TXT")),
})  # fmt: skip
"""Kind of toolchain -> component, licence, and the text's place among the tool packages.

zig has a compiler-rt of its own; the NDK has LLVM's, under the licence that all of LLVM has: the text is the same in
every part of it, so that it need not come from an NDK, which may lie in a container's image.
"""
LIBCXX_VERSION: Final = re.compile(r"^#\s*define _LIBCPP_VERSION (\d\d)(\d\d)(\d\d)$", re.MULTILINE)


def libcxx_version(tools: Path) -> str:
    """Return the release of LLVM whose libc++, libc++abi and libunwind zig brings, as libc++'s own header says it."""
    header = tools / "ziglang" / "lib" / "libcxx" / "include" / "__config"
    found = LIBCXX_VERSION.search(header.read_text(encoding="utf-8"))
    assert found is not None
    return ".".join(str(int(number)) for number in found.groups())
