"""Apple's required reason API: which of its categories the undefined symbols of a binary tell of."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter


@dataclass(frozen=True, kw_only=True)
class Category:
    """A category of the API: Apple's name of it, its symbols without the underscore, and our reasons to use it."""

    name: str
    reasons: tuple[str, ...]
    symbols: tuple[str, ...]


@cache
def categories() -> tuple[Category, ...]:
    """Return Apple's list, as far as it shows in undefined symbols."""
    text = (files("ortrim") / "data" / "package" / "apple" / "required-reasons.toml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Category, ...]).validate_python(tomllib.loads(text)["categories"])


def used_categories(undefined: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the names of the categories that symbols belong to, each with those symbols in order of their names."""
    names = {plain_name(name) for name in undefined}
    found = {category.name: tuple(sorted(names & set(category.symbols))) for category in categories()}
    return {name: symbols for name, symbols in found.items() if symbols}


def plain_name(symbol: str) -> str:
    """Return a symbol's name without its variant: `stat$INODE64` is what `stat` is on Macs with Intel's processors."""
    return symbol if symbol.startswith("OBJC_") else symbol.partition("$")[0]
