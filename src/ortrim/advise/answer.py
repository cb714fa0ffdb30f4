"""The answer to whether models would run on a runtime that users have, and its words. Pure."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ortrim.advise.compatibility import OperatorFinding

DEFAULT_CONVERSION: Final = ("fixed", "extended")
"""Style and level of a model whose buildspec says nothing of them."""


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """What a runtime makes of one model.

    `conversion` is style and level of the conversion, empty for a model that was in ORT format already. `obstacles`
    keep it from loading whatever operators there are; `unknowns` could not be found out. `remedies` were tried, and
    each of them makes the model fit.
    """

    model: str
    fits: bool
    conversion: str = ""
    operators: tuple[OperatorFinding, ...] = ()
    obstacles: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a runtime makes of several models.

    `change` is operator configuration that lets it run all of them, a new line for each operator's domain and opset,
    empty when no operator or type is missing; `buildspec` are the same in the words of a buildspec.
    """

    schema: Literal["ortrim-compatibility/1"] = "ortrim-compatibility/1"
    runtime: str
    ort_version: str
    targets: tuple[str, ...]
    fits: bool
    models: tuple[ModelAnswer, ...]
    change: str = ""
    buildspec: str = ""


def conversion_words(conversion: tuple[str, str]) -> str:
    """Return style and level in words."""
    style, level = conversion
    return f"style '{style}', level '{level}'"


def buildspec_lines(name: str, path: Path, conversion: tuple[str, str]) -> str:
    """Return the lines that add a model to a buildspec."""
    lines = ["[[models]]", f'name = "{name}"', f"path = {_toml(str(path))}"]
    words = zip(("style", "level"), conversion, DEFAULT_CONVERSION, strict=True)
    lines += [f'{key} = "{value}"' for key, value, usual in words if value != usual]
    return "".join(f"{line}\n" for line in lines)


def missing_lines(answer: ModelAnswer) -> tuple[str, ...]:
    """Return all that keeps a model from running, each in one line."""
    operators = (
        f"{each.operator.domain} {each.operator.name} ({each.operator.opset}) is missing: {each.detail}"
        for each in answer.operators
        if each.missing
    )
    return (*answer.obstacles, *operators)


def _toml(text: str) -> str:
    """Return a text as TOML's basic string, whose escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
