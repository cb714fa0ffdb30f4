"""The least memory in which a model loads and runs, found by halving."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ortrim.core.measurements import LeastMemory
from ortrim.errors import VerifyError
from ortrim.verify.devices.base import Repetition, RunRequest
from ortrim.verify.devices.qemu_system import DEFAULT_MEMORY_MIB, QemuSystem

LOWER_MIB: Final = 40
"""Below what Debian's kernel starts with."""
STEP_MIB: Final = 2
TOO_LITTLE: Final = frozenset({
    "out-of-memory", "machine-crashed", "machine-garbage", "runner-crashed", "runner-failed", "runner-timeout",
    "library-refused", "model-refused", "inference-failed", "output-unwritable", "runner-garbage",
})  # fmt: skip
"""How too little memory may show: the kernel kills, does not even start, or an allocation fails and is reported. Each
counts as too little only because the same run ended well with the most memory."""
REPETITION: Final = Repetition(runs=3, warmup=1, timeout_seconds=120.0)


def least_memory(
    device: QemuSystem,
    request: RunRequest,
    *,
    model: str,
    lower_mib: int = LOWER_MIB,
    upper_mib: int = DEFAULT_MEMORY_MIB,
    step_mib: int = STEP_MIB,
    on_try: Callable[[int], None] = lambda _: None,
) -> LeastMemory:
    """Halve between a ceiling that is too low, `lower_mib`, and one that has to be enough, `upper_mib`.

    Of the answer, `enough_mib` is at most `step_mib` above `too_little_mib`. A ceiling holds the kernel and the files
    too: `usable_bytes` is what the kernel had to give away, to files first, with `enough_mib`. `model` is its name.
    `on_try` is told each ceiling before it is tried. Raises what the run with `upper_mib` raises, and `VerifyError`
    of any run that did not fail for want of memory.
    """
    search = _Search(device=device, request=request, on_try=on_try)
    search.ends_well(upper_mib, must=True)
    low, high = lower_mib, upper_mib
    while high - low > step_mib:
        middle = (low + high) // 2
        low, high = (low, middle) if search.ends_well(middle) else (middle, high)
    return LeastMemory(
        model=model,
        enough_mib=high,
        usable_bytes=search.usable_bytes[high],
        too_little_mib=low,
        tried=tuple(search.tried),
    )


def tries(upper_mib: int, lower_mib: int = LOWER_MIB, step_mib: int = STEP_MIB) -> int:
    """Return how many runs a search takes, at most."""
    return 1 + max(0, math.ceil(math.log2((upper_mib - lower_mib) / step_mib)))


@dataclass(kw_only=True)
class _Search:
    """The runs of one search, in turn."""

    device: QemuSystem
    request: RunRequest
    on_try: Callable[[int], None]
    tried: list[tuple[int, str]] = field(default_factory=list)
    usable_bytes: dict[int, int] = field(default_factory=dict)

    def ends_well(self, ceiling: int, *, must: bool = False) -> bool:
        """Run once; a failure that may be for want of memory is an answer, unless it `must` end well."""
        self.on_try(ceiling)
        machine = self.device.with_memory(ceiling)
        try:
            machine.run(self.request)
        except VerifyError as error:
            if must or error.reference not in TOO_LITTLE:
                raise
            self.tried.append((ceiling, error.reference))
            return False
        self.tried.append((ceiling, "enough"))
        self.usable_bytes[ceiling] = machine.facts().memory_bytes
        return True
