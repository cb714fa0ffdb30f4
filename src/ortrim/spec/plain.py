"""TOML data to JSON data: the values that JSON lacks, which no key of a buildspec takes, are problems."""

import math
from typing import Any, Final

from ortrim.spec.problems import Location, Problem, kind

DEEPEST: Final = 32
"""Levels of nesting that are followed; a buildspec needs six."""


def plain_copy(value: Any, location: Location, problems: list[Problem]) -> Any:
    """Return a copy of TOML data in which None stands for each value that is reported in `problems`."""
    if len(location) > DEEPEST:
        problems.append(Problem(reference="bad-value", location=location[:8], what="is nested too deeply"))
        return None
    if isinstance(value, dict):
        return {key: plain_copy(below, (*location, key), problems) for key, below in value.items()}
    if isinstance(value, list):
        return [plain_copy(below, (*location, index), problems) for index, below in enumerate(value)]
    if (reference_and_what := _unfit(value)) is None:
        return value
    problems.append(Problem(reference=reference_and_what[0], location=location, what=reference_and_what[1]))
    return None


def _unfit(value: Any) -> tuple[str, str] | None:
    """Return the reference and the words for a value that no key takes."""
    if not isinstance(value, str | int | float):
        return "wrong-type", f"is {kind(value)}, which no key takes"
    if isinstance(value, float) and not math.isfinite(value):
        return "bad-value", f"must be a finite number, not {value}"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "bad-value", "does not fit into the 64 bits of a TOML integer"
    return None
