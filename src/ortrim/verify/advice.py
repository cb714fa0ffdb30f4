"""What to write into a buildspec when the inputs that ortrim makes are not ones that the model can run on."""

import json
import re
from typing import Final

from ortrim.core.models import ModelFacts, TensorInfo

BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
BEYOND: Final = re.compile(
    r"out of (?:data )?bounds|out of range|out-of-bound|within the inclusive range|index.{0,40}(?:range|bound)",
    re.IGNORECASE,
)
"""What kernels say of an index that is too large: Gather, GatherElements, GatherND, ScatterElements, OneHot, Slice."""
RANGE: Final = re.compile(r"inclusive range \[-?\d+, ?(\d+)\]")
SHOWN_NAMES: Final = 4
ONES: Final = "dimensions are 1 where the case does not say what the model was made for, such as"
RECORDED: Final = "; or give recorded inputs by 'data'"


def toml_key(name: str) -> str:
    """Write a name of the model's as a key of TOML."""
    return name if BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def advice(facts: ModelFacts, words: str) -> str:
    """Return a hint for a model that the full runtime refused to run in `words`."""
    numbers = [info for info in facts.inputs if info.element_type.startswith(("int", "uint"))]
    if numbers and BEYOND.search(words):
        return _smaller_numbers(numbers, words)
    if numbers and "SIGFPE" in words:
        return "a division by 0; say in the case how small they may be: " + _bounded(numbers, "low = 1")
    if named := _dynamic_names(facts):
        example = ", ".join(f"{toml_key(name)} = 160" for name in named[:SHOWN_NAMES])
        return f"{ONES}: dimensions = {{ {example} }}{RECORDED}"
    if free := [info for info in facts.inputs if info.shape is None or None in info.shape]:
        return f"{ONES}: inputs = {{ {toml_key(free[0].name)} = {{ shape = [{_sizes(free[0])}] }} }}{RECORDED}"
    return f"the case may not fit the model, whose inputs invoke inspect shows{RECORDED}"


def _smaller_numbers(numbers: list[TensorInfo], words: str) -> str:
    found = RANGE.search(words)
    largest = found[1] if found else "4"
    example = _bounded(numbers, f"high = {largest}")
    return f"random integers go from 0 to 9; say in the case how large they may be: {example}"


def _bounded(numbers: list[TensorInfo], bound: str) -> str:
    shown = ", ".join(f"{toml_key(info.name)} = {{ {bound} }}" for info in numbers[:SHOWN_NAMES])
    return f"inputs = {{ {shown} }}"


def _dynamic_names(facts: ModelFacts) -> list[str]:
    sizes = (size for info in facts.inputs for size in info.shape or ())
    return list(dict.fromkeys(size for size in sizes if isinstance(size, str)))


def _sizes(info: TensorInfo) -> str:
    return ", ".join("160" if size is None else str(size) for size in info.shape or (1, None))
