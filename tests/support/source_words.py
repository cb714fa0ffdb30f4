"""Texts as they stand in the sources."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
    """Yield the words of each rule, of `lint` and for packages, and of each cause why a program fails."""
    for path in (SOURCES / "resources" / "rules").glob("*.toml"):
        yield from tomllib.loads(path.read_text(encoding="utf-8")).values()
    for found in tomllib.loads((SOURCES / "resources" / "causes.toml").read_text(encoding="utf-8")).values():
        yield from found
