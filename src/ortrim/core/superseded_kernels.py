"""Kernels of MLAS that no processor chooses from a floor upwards, by the order in which its table is filled. Pure.

The constructor of `platform.cpp` begins with kernels for any x64 processor and replaces them, branch by branch, by
those for AVX and for AVX2 with FMA. Where both are the floor, these branches are always taken, and what they replace is
never called. Upstream: core/mlas/lib/platform.cpp.
"""

import re
from typing import Final

from ortrim.core.kernel_table import ASSIGNED

FLOORS: Final = ("x86-64-v3", "x86-64-v4")
"""Processors, as buildspecs name them, that have AVX2 and FMA."""
BRANCH: Final = "Check if the processor supports AVX2/FMA3 features."
"""Upstream's words before the branch."""
SLOT: Final = re.compile(r"(?:this->|table\.)(\w+(?:\[\w+\])?)\s*=\s*&?([A-Za-z_]\w*)")


def superseded_kernels(constructor: str, cpu: str, after: str = "") -> frozenset[str]:
    """Return the plain names of kernels that are put into the table and replaced again on each processor from `cpu` on.

    `after` is the text of what fills entries after the constructor, whatever the processor. None for another floor, or
    when the branch is not found.
    """
    mark = constructor.find(BRANCH)
    start = constructor.find("{", mark)
    if cpu not in FLOORS or mark == -1 or start == -1:
        return frozenset()
    branch, rest = _own_statements(constructor[start:])
    taken = SLOT.findall(constructor[:start] + branch + after)
    last = frozenset(dict(taken).values())
    return frozenset(kernel for _, kernel in taken) - last - frozenset(kernel for _, kernel in ASSIGNED.findall(rest))


def _own_statements(block: str) -> tuple[str, str]:
    """Return what stands in a block that begins a text, blocks within it left out, and all else of the text."""
    own, others, depth = "", "", 0
    for position, piece in enumerate(parts := re.split(r"([{}])", block)):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if position and depth == 0:
            return own, others + "".join(parts[position:])
        if depth == 1:
            own += piece
        else:
            others += piece
    return own, others
