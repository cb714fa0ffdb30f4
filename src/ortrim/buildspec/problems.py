"""What single values of a buildspec may look like, and what is wrong with it, each problem with its place."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from ortrim.errors import SpecError

CONFIG = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False)
NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
SHA256: Final = r"^[0-9a-f]{64}$"
VERSION: Final = r"^([0-9]+\.[0-9]+(\.[0-9]+)?|newest)$"
GLIBC: Final = r"^2\.[0-9]+$"
NDK: Final = r"^[1-9][0-9](\.[0-9]{1,2}\.[0-9]{6,9})?$"
XCODE: Final = r"^[1-9][0-9]\.[0-9]{1,2}(\.[0-9]{1,2})?$"
APPLE_VERSION: Final = r"^[1-9][0-9]?\.[0-9]{1,2}$"
PROVIDER: Final = r"^[A-Za-z0-9]{1,64}$"
REQUIREMENT: Final = r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9.+!_-]*$"
"""`name==version`; a leading dash is refused, since pip would take it for an option."""
Name = Annotated[str, Field(pattern=NAME)]
Sha256 = Annotated[str, Field(pattern=SHA256)]
Dimension = Annotated[int, Field(ge=0, le=2**31 - 1)]
Scalar = bool | int | float | str
Text = Annotated[str, Field(min_length=1)]


def toml_string(text: str) -> str:
    """Return a text as TOML's basic string, whose escapes are those of JSON but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


Location = tuple[str | int, ...]
"""Keys and indices from the top of the document, for example `("models", 0, "cases", 1)`."""

LONGEST_SHOWN: Final = 72
KINDS: Final[dict[type, str]] = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "an array",
    dict: "a table",
}


@dataclass(frozen=True)
class Problem:
    """One problem; `what` continues the quoted location, as in "is not a known key"."""

    code: str
    location: Location
    what: str
    why: str = ""
    hint: str = ""


def as_error(problem: Problem, file: Path) -> SpecError:
    """Return the diagnostic of a problem in `file`."""
    what = f"'{dotted(problem.location)}' {problem.what}"
    return SpecError(problem.code, what, where=shown_file(file), why=problem.why, hint=problem.hint)


def shown_file(file: Path) -> str:
    """Return a path that can be printed whatever bytes its name is made of."""
    return str(file).encode(errors="backslashreplace").decode()


def dotted(location: Location) -> str:
    """Return a location as TOML would name it: `models[0].inputs."x.y"`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{_key(part)}" for part in location)
    return "".join(parts).removeprefix(".")


def _key(key: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]+", key):
        return _shortened(key)
    return _shortened(json.dumps(key, ensure_ascii=not key.isprintable()))


def shown(value: Any) -> str:
    """Return a value for a message: simple ones as written in TOML, others by their kind."""
    if isinstance(value, bool):
        return str(value).lower()
    return _shortened(repr(value)) if isinstance(value, str | int | float) else kind(value)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def kind(value: Any) -> str:
    """Return what a TOML value is, in words."""
    return KINDS.get(type(value), "a date or time")


def nearest(word: Any, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint that names the known word nearest to the one given, or `otherwise`."""
    close = get_close_matches(str(word), list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else otherwise


RENAMED: Final[Mapping[str, str]] = {
    "levers": "build_options",
    "link_time": "lto",
    "precompiled": "precompiled_headers",
    "folding": "icf",
    "compressible": "compression_ordering",
    "unwinding": "unwind_tables",
    "both_hashes": "hash_style_both",
    "packing": "packed_relocations",
    "lean_runtime": "libcxx_no_exceptions",
    "wide_vectors": "avx512_kernels",
    "branches": "inter_op_threads",
}
"""Keys by which buildspecs were written before, and what they are called now."""
INVERTED: Final[Mapping[str, str]] = {"unused_types": "type_reduction", "unreached_kernels": "dead_kernel_elimination"}
"""Keys that said what is kept; the new ones say what is left out."""
MOVED: Final = frozenset({("android", "providers"), ("apple", "providers")})
"""Tables with keys that are now the whole buildspec's, and a target's."""


GONE: Final[Mapping[str, str]] = {
    "nnapi": "Android 15 deprecates NNAPI, and ortrim builds it no longer; write 'xnnpack', or [] for the CPU alone",
}
"""Values that buildspecs had before, and what to write in their place."""


def renamed(key: str, known: Iterable[str]) -> str:
    """Return a hint for a key that has another name now, or an empty one."""
    if key in RENAMED and RENAMED[key] in known:
        return f"it is called '{RENAMED[key]}' now"
    if key in INVERTED and INVERTED[key] in known:
        return f"write '{INVERTED[key]}', which is true where this was false"
    return ""


def moved(location: Location) -> str:
    """Return a hint for a key that stands in another table now, or an empty one."""
    return f"'{location[-1]}' is a key of the whole buildspec now, and of a target" if location[-2:] in MOVED else ""


def listed(words: Sequence[str], link: str = "or") -> str:
    """Return words as a sentence lists them: `a, b or c`."""
    return f" {link} ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
