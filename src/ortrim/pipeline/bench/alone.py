"""What keeps measurements of this user on this machine from disturbing each other, and from sharing files."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final

from ortrim.errors import UsageError
from ortrim.storage.cache import cache_folder
from ortrim.storage.folders import locked, locked_if_free
from ortrim.verify.devices.names import DeviceName

OF_THIS_MACHINE: Final = frozenset({"host", "qemu-user", "qemu-system"})
"""Kinds of devices whose runs take this machine's own cores."""


@contextmanager
def alone() -> Iterator[None]:
    """Hold what only one of `bench`, `compare` and a verification may hold: two at once would measure each other.

    Raises `UsageError` (`bench-busy`).
    """
    with locked_if_free(_machine()) as free:
        if not free:
            what, hint = (
                "another measurement is under way on this machine",
                "wait for its end: each would disturb the other",
            )
            raise UsageError("bench-busy", what, hint=hint)
        yield


@contextmanager
def in_turn(folder: Path, devices: Sequence[DeviceName], tell: Callable[[str], None]) -> Iterator[None]:
    """Hold, for a verification, the folder of its outputs, and this machine if it runs anything here.

    Waits for another one that does, which `tell` is told.
    """
    with ExitStack() as held:
        waits = partial(tell, "waits for another verification in the same folder")
        name = sha256(str(folder.resolve()).encode()).hexdigest()
        held.enter_context(locked(cache_folder("bench") / name, waits))
        if any(device.kind in OF_THIS_MACHINE for device in devices):
            waits = partial(tell, "waits for another measurement on this machine")
            held.enter_context(locked(_machine(), waits))
        yield


def _machine() -> Path:
    return cache_folder("bench") / "machine"
