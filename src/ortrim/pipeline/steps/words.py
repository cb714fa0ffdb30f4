"""Steps in words, as a buildspec writes them."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from ortrim.core.serialization import to_data
from ortrim.core.step_choices import StepChoices


def step_name(number: int, choices: StepChoices) -> str:
    """Return a step as diagnostics name it: `step 2 (opset)`."""
    return f"step {number} ({use_of(choices)})"


def use_of(choices: StepChoices) -> str:
    """Return the step's kind."""
    return str(getattr(choices, "use", ""))


def options_text(choices: StepChoices) -> str:
    """Return the keys that were given otherwise than by default, other than `use`: `version = 17`."""
    plain = to_data(choices)
    given = {field.name: plain[field.name] for field in fields(choices) if _is_given(choices, field)}
    return ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items())


def step_files(steps: Iterable[StepChoices]) -> Iterator[Path]:
    """Yield the files that steps name, as written."""
    for choices in steps:
        for field in fields(choices):
            value = getattr(choices, field.name)
            yield from (each for each in (value if isinstance(value, tuple) else (value,)) if isinstance(each, Path))


def _is_given(choices: StepChoices, field: Any) -> bool:
    if field.name == "use":
        return False
    value = getattr(choices, field.name)
    return bool(value) if isinstance(value, dict | tuple) else value != field.default
