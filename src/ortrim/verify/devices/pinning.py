"""Keeping the runner on chosen cores, so that a phone's slow and fast cores do not mix in one number."""

from typing import Final

from ortrim.errors import UsageError
from ortrim.verify.devices.transport import Transport

CHECK_SECONDS: Final = 20.0
MOST_CORES: Final = 1024
"""Beyond any machine, and where the masks of `taskset` end."""


def pinned(cores: tuple[int, ...]) -> tuple[str, ...]:
    """Return the words that go before a command to keep it on `cores`; none when there are none.

    A mask in hexadecimal without `0x` is what `taskset` takes in util-linux, in toybox (Android) and in BusyBox.
    """
    return ("taskset", f"{sum(1 << core for core in set(cores)):x}") if cores else ()


def check_pinning(transport: Transport, cores: tuple[int, ...], name: str) -> None:
    """Find out before anything is measured whether the machine can pin.

    Otherwise `taskset` would fail in the runner's place. Raises `UsageError` (`cannot-pin`) and what the transport
    raises.
    """
    if not cores:
        return
    what = f"cannot run on cores {', '.join(map(str, cores))}"
    if not all(0 <= core < MOST_CORES for core in cores):
        raise UsageError("cannot-pin", what, where=name, hint=f"cores have numbers from 0 to {MOST_CORES - 1}")
    done = transport.execute((*pinned(cores), "true"), timeout_seconds=CHECK_SECONDS)
    if done.returncode != 0:
        why = "\n".join(done.stderr.strip().splitlines()[-2:])
        hint = "choose cores that are there and not switched off: cat /sys/devices/system/cpu/online"
        raise UsageError("cannot-pin", what, where=name, why=why, hint=hint)
