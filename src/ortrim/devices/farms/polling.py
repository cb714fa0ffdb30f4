"""Waiting for a farm: asking again and again without asking too much, giving up in time, and hearing of Ctrl-C."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Generic, TypeVar

from ortrim.base.command import stop_request
from ortrim.devices.farms.farm import Tell
from ortrim.errors import Diagnostic

Facts = TypeVar("Facts")

ASKED_SECONDS: Final = 0.2
"""How long a thread sleeps before it asks whether it is to stop: only the main thread is interrupted by Ctrl-C."""


@dataclass(frozen=True, kw_only=True)
class FarmTimeouts:
    """How often a farm is queried, and the pauses after which a lost connection is tried again.

    A farm ends a run that takes too long; only when it has not done so after `grace_seconds` more is it done from here.
    """

    interval_seconds: float = 15.0
    pauses: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    grace_seconds: float = 300.0


class Transient(Exception):
    """A failure that may be gone the next time: `diagnostic` says what it is if it is not."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.what)
        self.diagnostic = diagnostic


class FarmStage(Enum):
    """How far a run has come."""

    WAITING = auto()
    RUNNING = auto()
    DONE = auto()


@dataclass(frozen=True, kw_only=True)
class Seen(Generic[Facts]):
    """What was seen of a run: its stage, a few words for the user, and what the farm said."""

    stage: FarmStage
    words: str
    facts: Facts


@dataclass(frozen=True, kw_only=True)
class FarmLimits:
    """How long a run may wait for a device, and how long it may then take."""

    queue_seconds: float
    run_seconds: float


class Overdue(Exception):
    """A run has taken longer than it may; `stage` says at what."""

    def __init__(self, stage: FarmStage, seconds: float) -> None:
        super().__init__(f"{stage.name.lower()} for more than {seconds:g} seconds")
        self.stage = stage
        self.seconds = seconds


def pause(seconds: float) -> None:
    """Sleep; raises `KeyboardInterrupt` when this thread is asked to stop."""
    request = stop_request()
    ends = time.monotonic() + seconds
    while True:
        if request is not None:
            request.check()
        left = ends - time.monotonic()
        if left <= 0:
            return
        time.sleep(left if request is None else min(left, ASKED_SECONDS))


def persist(ask: Callable[[], Facts], pauses: tuple[float, ...] = ()) -> Facts:
    """Return what `ask` returns; call it again after each pause as long as it raises `Transient`.

    Raises the last one's diagnostic, and what else `ask` raises. Without pauses it is called once.
    """
    for seconds in pauses:
        try:
            return ask()
        except Transient:
            pause(seconds)
    try:
        return ask()
    except Transient as failure:
        raise failure.diagnostic from None


def follow(look: Callable[[], Seen[Facts]], limits: FarmLimits, interval_seconds: float, tell: Tell) -> Facts:
    """Query a run until it has ended, and report every change; return the farm's last answer.

    A run that has once begun counts as running from then on. Raises `Overdue`, and what `look` raises.
    """
    stage, since, told = FarmStage.WAITING, time.monotonic(), ""
    while True:
        seen = look()
        if seen.words != told:
            told = seen.words
            tell(told)
        if seen.stage is FarmStage.DONE:
            return seen.facts
        if seen.stage is FarmStage.RUNNING and stage is FarmStage.WAITING:
            stage, since = FarmStage.RUNNING, time.monotonic()
        seconds = limits.queue_seconds if stage is FarmStage.WAITING else limits.run_seconds
        if time.monotonic() - since >= seconds:
            raise Overdue(stage, seconds)
        pause(interval_seconds)
