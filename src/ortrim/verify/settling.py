"""Further rounds where a verdict is in doubt: as many as settle it, while there is time."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Final

from ortrim.core.target_spec import Budgets
from ortrim.verify.devices.base import Device, Repetition
from ortrim.verify.judge import ALL_MEANINGFUL, Doubt, Meaningless, doubt_of
from ortrim.verify.outputs import ONCE
from ortrim.verify.quantities import LOOKS, P50, PEAK
from ortrim.verify.rounds import Measurement, Rounds, one_round

SHORT: Final = Repetition(runs=20, warmup=3, seconds=0.25)
"""Many short rounds tell more than few long ones: both processes of a round then see the same of the machine."""
MOST_SECONDS: Final = 90.0


def settled(
    device: Device,
    measurement: Measurement,
    rounds: Rounds,
    budgets: Budgets,
    *,
    meaningless: Callable[[], Meaningless] = lambda: ALL_MEANINGFUL,
    tell: Callable[[str], None] = lambda _: None,
    most_seconds: float = MOST_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Rounds:
    """Return the rounds of one model with those added that settle verdicts on median latency, memory and loading.

    The number of rounds is doubled as long as one of these is inconclusive, and `most_seconds` are not over. A round
    runs no more than what is in doubt needs. `tell` is told what that is. Raises what `Device.run` raises.
    """
    until = clock() + most_seconds
    for done, wanted in pairwise(LOOKS):
        doubt = doubt_of(budgets, rounds, meaningless())
        if not doubt.measures or clock() >= until:
            break
        tell(f"{measurement.model}: {' and '.join(sorted(doubt.measures))} in doubt, {wanted} rounds")
        plan = _only(measurement, doubt)
        for number in range(done, wanted):
            if clock() >= until:
                break
            turn = replace(one_round(device, plan, ours_first=number % 2 == 0), only=doubt.measures)
            rounds = replace(rounds, shorter=(*rounds.shorter, turn))
    return rounds


def _only(measurement: Measurement, doubt: Doubt) -> Measurement:
    """Return the least that tells of what is in doubt; the peak of memory needs every case, loading none."""
    needed = tuple(case for case in measurement.cases if PEAK in doubt.measures or case.name in doubt.cases)
    return replace(measurement, cases=needed, repetition=SHORT if P50 in doubt.measures else ONCE)
