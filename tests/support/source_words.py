"""Texts as they stand in the sources."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import ortrim

SOURCES: Final = Path(ortrim.__file__).parent
ANY: Final = "ANY"
"""What stands in an f-string's place."""


def words_of(node: ast.expr) -> str:
    """Return a text as it stands in the source, with `ANY` for what is filled in."""
    match node:
        case ast.Constant(value=str() as words):
            return words
        case ast.JoinedStr(values=parts):
            return "".join(words_of(part) if isinstance(part, ast.Constant) else ANY for part in parts)
        case ast.BinOp(left=left, right=right):
            return words_of(left) + words_of(right)
        case ast.IfExp(body=one, orelse=other):
            return f"{words_of(one)} | {words_of(other)}"
        case ast.BoolOp(values=parts):
            return " | ".join(map(words_of, parts))
        case _:
            return ""


def worded_rules() -> Iterator[dict[str, str]]:
    """Yield the words of each rule, and of each cause why a program fails or a model is refused."""
    found = [each for path in (SOURCES / "resources" / "rules").glob("*.toml") for each in _table(path).values()]
    found += [each for causes in _table(SOURCES / "resources" / "causes.toml").values() for each in causes]
    for each in found:
        yield {key: words for key, words in each.items() if isinstance(words, str)}


def _table(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))
