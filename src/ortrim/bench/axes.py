"""The session settings that a sweep can vary, in the words of a buildspec's `[session]`, and `level`."""

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final

from ortrim.core.bench import BenchPoint
from ortrim.errors import UsageError

Value = bool | int | str
EACH: Final = "each"
"""Every setting alone, each in turn."""
LEVEL: Final = "level"
TRUTHS: Final = (False, True)
CHOICES: Final[Mapping[str, tuple[Value, ...]]] = MappingProxyType({
    "threads": (1, 2),
    "branches": (1, 2),
    "spinning": TRUTHS,
    LEVEL: ("none", "basic", "extended", "all"),
    "load": ("map", "bytes", "file"),
    "in_place": TRUTHS,
    "prepacking": TRUTHS,
    "arena": TRUTHS,
    "memory_pattern": TRUTHS,
})  # fmt: skip
"""Each axis with the values that it takes unless it is told others; `threads` goes on to the number of cores."""
WORDS: Final = MappingProxyType({"true": True, "false": False})
MOST_THREADS: Final = 1024


def axis_from(word: str, cores: int) -> tuple[str, tuple[Value, ...]]:
    """Read `threads` or `threads=1,2`. Raises `UsageError` (`bad-option`)."""
    name, given, values = word.partition("=")
    if name not in CHOICES:
        close = get_close_matches(name, CHOICES, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"choose {EACH}, or some of {', '.join(CHOICES)}"
        raise UsageError("bad-option", f"{name[:100]!r} is no setting to vary", where="--sweep", hint=hint)
    if not given:
        return name, values_of(name, cores)
    return name, tuple(dict.fromkeys(_value(name, each.strip()) for each in values.split(",")))


def values_of(name: str, cores: int) -> tuple[Value, ...]:
    """Return the values of an axis on a machine with so many cores."""
    if name != "threads":
        return CHOICES[name]
    powers = [number for number in (1, 2, 4, 8, 16, 32, 64) if number < cores]
    return (*powers, max(cores, 1))


def with_value(point: BenchPoint, name: str, value: Value) -> BenchPoint:
    """Return a point with another value of one setting; its name stays."""
    if name == LEVEL:
        level: Any = value
        return replace(point, level=level)
    changed: dict[str, Any] = {name: value}
    return replace(point, session=replace(point.session, **changed))


def value_of(point: BenchPoint, name: str) -> Value | None:
    """Return the value that a point has of one setting."""
    if name == LEVEL:
        return point.level
    value: Value | None = getattr(point.session, name)
    return value


def name_of(point: BenchPoint, base: BenchPoint) -> str:
    """Name a point by what it has otherwise than the base, in the words that ask for it: `threads=2 spinning=true`."""
    changed = [name for name in CHOICES if value_of(point, name) != value_of(base, name)]
    return " ".join(f"{name}={text_of(value_of(point, name))}" for name in changed) or base.name


def text_of(value: Value | None) -> str:
    """Write a value as TOML does, a word without its quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(name: str, word: str) -> Value:
    allowed = CHOICES[name]
    if word in WORDS and isinstance(allowed[0], bool):
        return WORDS[word]
    if isinstance(allowed[0], str) and word in allowed:
        return word
    number = len(word) <= len(str(MOST_THREADS)) and word.isascii() and word.isdecimal()
    if number and type(allowed[0]) is int and 1 <= int(word) <= MOST_THREADS:
        return int(word)
    known = f"numbers from 1 to {MOST_THREADS}" if type(allowed[0]) is int else ", ".join(map(text_of, allowed))
    raise UsageError("bad-option", f"{word[:100]!r} is no value of {name}", where="--sweep", hint=f"choose {known}")
