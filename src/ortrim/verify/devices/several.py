"""Several devices side by side, each in a thread: what one of them does or suffers does not touch the others."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, TypeVar

from ortrim.errors import Diagnostic
from ortrim.verify.devices.base import Device

Result = TypeVar("Result")
Opener = Callable[[], Device]


@dataclass(frozen=True, kw_only=True)
class OnDevice(Generic[Result]):
    """What one device gave: a result, or the diagnostic of why there is none. `name` is as it was asked for."""

    name: str
    result: Result | None = None
    error: Diagnostic | None = None


def on_each(devices: Sequence[tuple[str, Opener]], action: Callable[[Device], Result]) -> tuple[OnDevice[Result], ...]:
    """Open each device, act on it, close it, all at the same time; return what each gave, in the order asked for.

    A `Diagnostic` counts as that device's result; anything else is a fault of ours and is raised when all have ended.
    """
    if not devices:
        return ()
    with ThreadPoolExecutor(max_workers=len(devices), thread_name_prefix="device") as threads:
        futures = [threads.submit(_on_one, name, opener, action) for name, opener in devices]
    return tuple(future.result() for future in futures)


def _on_one(name: str, opener: Opener, action: Callable[[Device], Result]) -> OnDevice[Result]:
    try:
        with closing(opener()) as device:
            return OnDevice(name=name, result=action(device))
    except Diagnostic as error:
        return OnDevice(name=name, error=error)
