"""Lists of a processor's cores as Linux and `taskset -c` write them: `0,4-7`. Pure."""

import re
from collections.abc import Sequence
from typing import Final

MOST_CORES: Final = 1024  # beyond any machine, and where the masks of `taskset` end
RANGE: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def read_cores(text: str) -> tuple[int, ...]:
    """Return the numbers in a list of cores, sorted, each once; none for what is no list or has numbers too large."""
    ranges = [RANGE.fullmatch(part) for part in text.strip().split(",")]
    found = {
        number
        for each in ranges
        if each is not None
        for number in range(int(each[1]), int(each[2] or each[1]) + 1) or (MOST_CORES,)
    }
    return () if None in ranges or max(found) >= MOST_CORES else tuple(sorted(found))


def cores_text(cores: Sequence[int]) -> str:
    """Return the list of some cores, ranges as ranges; empty for none."""
    numbers = sorted(set(cores))
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    pairs = zip(firsts, lasts, strict=True)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in pairs)
