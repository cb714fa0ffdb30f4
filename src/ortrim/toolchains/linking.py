"""Linking through the lld inside zig, whose driver refuses options that lld takes. Shell text for a wrapper. Pure.

zig says with `-v` how it would link. What stands before the objects in that line, and what follows them (the libraries
of the target's C library, which zig makes for the floor that is asked for), is taken over; everything between is what
the wrapper was given.
"""

from typing import Final

from ortrim.core.profiles import PAST_DRIVER

LINKING: Final = """\
link() {{
  set -f
  plus=
  case " $* " in *" -nostdlib++ "*) plus=-nostdlib++ ;; esac
  : >ortrim-probe.c
  {command} -c ortrim-probe.c -o ortrim-probe.o || exit
  line=$({command} $plus -v -Os -s -shared ortrim-probe.o -o ortrim-probe.so 2>&1 | grep "^ld.lld .* ortrim-probe.o ")
  rm -f ortrim-probe.c ortrim-probe.o ortrim-probe.so
  [ -n "$line" ] || {{ echo "zig does not say how it links" >&2; exit 1; }}
  for argument do
    shift
    case "$argument" in
    -Wl,*) IFS=,; set -- "$@" ${{argument#-Wl,}}; unset IFS ;;
    -D*|-O*|-W*|-X*|-f*|-g|-g[0-9]*|-l*|-m*|-nostdlib++|-std=*) ;;
    *) set -- "$@" "$argument" ;;
    esac
  done
  IFS='
'
  set -- "$@" $(printf '%s\\n' "${{line#* ortrim-probe.o }}" | sed 's| \\([-/]\\)|\\
\\1|g')
  unset IFS
  head="${{line%% -o ortrim-probe.so *}}"
  exec {program} ld.lld ${{head#ld.lld}} "$@"
}}
case " $* " in *" {mark} "*) link "$@" ;; esac
"""
"""An empty object is linked as a probe. Paths may have spaces, none of which is at the end of a folder's name."""


def linking(program: str, command: str) -> str:
    """Return the part of a wrapper that links past the driver when it is asked to; `command` compiles.

    Both are in shell syntax.
    """
    return LINKING.format(program=program, command=command, mark=PAST_DRIVER)
