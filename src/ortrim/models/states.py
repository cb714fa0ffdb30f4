"""States: inputs of a model that are an output of the run before, told by their names."""

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Final

from ortrim.models.models import TensorInfo

PLAIN: Final = re.compile(
    r"^(past_key_values|present_key_values|past|present|prev(ious)?|last|in(it(ial)?)?|new|next|out|i|o)[_.]"
    r"|_(in|prev|past|init|out|new|next)(?=_|$)|(?<=[a-z])[nN]$"
)
"""What names have besides, when they call a state before a run or after it."""
ALIKE: Final = 0.6
STATE: Final = re.compile(r"state|hidden|cell|cache|past|mem|^h\d?$|^c\d?$|^hx$|^cx$|buf", re.IGNORECASE)
ENCODED: Final = re.compile(r"(^|[_.])enc", re.IGNORECASE)
"""What an encoder gives once is no state."""
NEXT: Final = re.compile(r"^(present|new|next)[_.]|_(new|next)(_|$)")
"""How outputs are called that cannot but be a state."""


def fed_by(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> Mapping[str, str]:
    """Return the outputs that become an input of the next run, by that input's name.

    Names are the same but for what `PLAIN` removes; else a state of floats is paired with the output of the most
    similar name that could have its shape.
    """
    found: dict[str, str] = {}
    plain = {_plain(each): each for each in outputs}
    for info in inputs:
        output = plain.get(_plain(info))
        if output and _is_state(info, output) and output.name not in found.values():
            found[info.name] = output.name
    pairs = [
        (alike, info.name, each.name)
        for info in inputs
        for each in outputs
        if info.name not in found
        and each.name not in found.values()
        and _could_be(info, each)
        and (alike := SequenceMatcher(None, _plain(info), _plain(each)).ratio()) >= ALIKE
    ]
    for _, name, output_name in sorted(pairs, key=lambda pair: -pair[0]):
        if name not in found and output_name not in found.values():
            found[name] = output_name
    return found


def _plain(info: TensorInfo) -> str:
    return PLAIN.sub("", info.name)


def _is_state(info: TensorInfo, output: TensorInfo) -> bool:
    """Whether an input is a state that an output of the same plain name feeds, whatever the types of both."""
    numbers = all(each.element_type.startswith(("float", "bfloat", "int", "uint")) for each in (info, output))
    return numbers and not ENCODED.search(info.name) and bool(STATE.search(info.name) or NEXT.search(output.name))


def _could_be(info: TensorInfo, output: TensorInfo) -> bool:
    if not STATE.search(info.name) or ENCODED.search(info.name) or "float" not in info.element_type:
        return False
    if output.element_type != info.element_type or info.shape is None or output.shape is None:
        return False
    pairs = zip(info.shape, output.shape, strict=False)
    fits = all(one == other or not (isinstance(one, int) and isinstance(other, int)) for one, other in pairs)
    return len(info.shape) == len(output.shape) and fits
