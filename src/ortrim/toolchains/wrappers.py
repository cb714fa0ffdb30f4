"""The small executable files through which a build reaches its compiler.

They hold no path, so that the same toolchain has the same text, and with it the same compiler cache key, on
every machine; the paths come in environment variables that the executor sets:

- `ORTRIM_COMPILER_C`, `ORTRIM_COMPILER_CXX`, `ORTRIM_AR`, `ORTRIM_RANLIB`: programs (zig's are one);
- `ORTRIM_SOURCES`, `ORTRIM_BUILD`: folders whose names are kept out of the objects, where `__FILE__` would
  otherwise put them; compilations run in the second;
- `ORTRIM_SOURCES_HERE`: the first as it is written relative to the second, which is how the compiler cache writes it.

The cache also writes the second's own files relative to it, so both folders become `.`, and an object is the same with
the cache and without.
"""

from typing import Final

from ortrim.toolchains.trial_links import trial

PREFIX_MAPS: Final = (
    '-ffile-prefix-map="$ORTRIM_SOURCES"=. -ffile-prefix-map="$ORTRIM_BUILD"=.'
    ' ${ORTRIM_SOURCES_HERE:+-ffile-prefix-map="$ORTRIM_SOURCES_HERE"=.}'
)

PRINT_MAP: Final = "-Wl,--print-map"
"""Asks lld, through zig, for a link map on standard output; `-Map` is refused by zig's driver."""


PRECOMPILED_MARK: Final = "-DORTRIM_PRECOMPILED="
"""Marks the compilations that use a precompiled header, which is `hot` or `cold`; from `units.cmake`."""

PRECOMPILING: Final = """\
precompile() {{
  for argument do
    shift
    case "$argument" in -D*|-I*|-O*|-X*|-f*|-g*|-m*|-std=*|-W*|--target=*|--sysroot=*) set -- "$@" "$argument" ;; esac
  done
  {command} {maps} "$@" -fpch-instantiate-templates -x c++-header \
"$ORTRIM_PRECOMPILED_HEADER" -o "$header.$$" && mv "$header.$$" "$header"
}}
kind=
case " $* " in *" -E "*) ;; *" {mark}cold "*) kind=cold ;; *" {mark}hot "*) kind=hot ;; esac
if [ -n "$kind" ]; then
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
) -> str:
    """Return the text of a compiler's wrapper.

    `identity` names the compiler and its version; `command` is what the wrapper runs, in shell syntax;
    `rewrites` are (argument, replacement) pairs for arguments that this compiler spells differently; `linking` is the
    part that reaches the linker past the compiler, where one is needed; `quick_trials` is for a clang that would
    compile its C++ library for CMake's trials. When the arguments ask for a link map on standard output, it goes to
    `$ORTRIM_LINK_MAP`.

    A clang that `precompiles` reads marked sources with `$ORTRIM_PRECOMPILED_HEADER` in front, which the first of
    each mark compiles: clang takes a header only for sources of the same target, optimised as it is. Preprocessing
    (`-E`) goes without, so that the compiler cache sees the whole text. Two that come at once make the header twice,
    and the second replaces the first with the same.
    """
    cases = "".join(f'    {old}) set -- "$@" {new} ;;\n' for old, new in rewrites)
    rewriting = (
        f'for argument do\n  shift\n  case "$argument" in\n{cases}    *) set -- "$@" "$argument" ;;\n  esac\ndone\n'
    )
    return (
        f"#!/bin/sh\n# {identity}\n"
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
    """Return the text of what CMake calls in front of a compiler that it chooses itself.

    It is given the compiler cache, if there is one, and the compiler with its arguments, and puts the wrapper of the
    given name, beside itself, in the compiler's place.
    """
    return (
        f"#!/bin/sh\n# {identity}\n"
        'case "${1##*/}" in\n'
        f'clang|clang++) shift; exec "${{0%/*}}/{wrapper}" "$@" ;;\n'
        f'*) cache="$1"; shift 2; exec "$cache" "${{0%/*}}/{wrapper}" "$@" ;;\n'
        "esac\n"
    )
