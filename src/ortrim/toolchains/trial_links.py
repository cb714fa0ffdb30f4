"""CMake's trials, quick on an empty cache. Shell text for zig's wrappers. Pure.

CMake tries the compiler with small programs, in folders of its own below `CMakeFiles`, and asks for no optimisation.
zig then compiles its C++ library and its sanitizer's runtime for that case alone, which takes minutes and serves
nothing else. A trial therefore goes without the sanitizer, which says nothing about what a compiler can do, and is
first linked without the C++ library: what links without it links with it, too. What does not is linked as CMake asked.
"""

from typing import Final

TRIAL: Final = """\
case "$PWD" in "${{ORTRIM_BUILD}}/CMakeFiles/"*)
  set -- "$@" -fno-sanitize=undefined
  case " $* " in
  *" -c "*|*" -E "*|*" -S "*) ;;
  *) if {{ said=$({command} {maps} "$@" -nostdlib++ 2>&1 >&3); }} 3>&1; then
    [ -z "$said" ] || printf '%s\\n' "$said" >&2
    exit 0
  fi ;;
  esac ;;
esac
"""


def trial(command: str, maps: str) -> str:
    """Return the part of a wrapper that takes CMake's trials; `command` compiles with `maps`, both in shell syntax."""
    return TRIAL.format(command=command, maps=maps)
