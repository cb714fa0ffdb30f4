"""What every Android offers to apps: libraries and their symbols, by the API level that introduced them."""

import tomllib
from functools import cache
from typing import Any, Final

from ortrim.binaries.android import ABI_FACTS, Abi, SystemApi, SystemLibrary
from ortrim.pins.shipped import pin_text

LIBRARIES: Final = "android/libraries.toml"
API_SYMBOLS: Final = "android/symbols.toml"


@cache
def system_api(abi: str) -> SystemApi:
    """Return what Android offers to apps of an ABI, whatever the API level. Raises KeyError for an ABI that is none."""
    about, symbols = _table(LIBRARIES), _table(API_SYMBOLS)
    libraries = {
        name: SystemLibrary(
            name=name,
            since=entry["since"],
            symbols=_symbols(symbols[name], ABI_FACTS[abi]) if entry.get("exact") else None,
            begins=tuple(entry.get("begins", ())),
        )
        for name, entry in about["libraries"].items()
    }
    return SystemApi(libraries=libraries, versions=about["versions"])


def _symbols(levels: dict[str, dict[str, str]], abi: Abi) -> dict[str, int]:
    """Return the symbols of one ABI with the first level that has each."""
    keys = ("all", str(abi.bits), abi.bionic)
    found: dict[str, int] = {}
    for level in sorted(levels, key=int):
        for name in (name for key in keys for name in levels[level].get(key, "").split()):
            found.setdefault(name, int(level))
    return found


@cache
def _table(name: str) -> dict[str, Any]:
    text = pin_text(name)
    assert text is not None
    return tomllib.loads(text)
