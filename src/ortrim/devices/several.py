"""Several devices side by side, each in a thread: what one of them does or suffers does not touch the others.

- A device that may get hot: each run waits until it is cool, and is repeated when the device throttled meanwhile.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Generic, TypeVar

from ortrim.base.command import stopped_by, termination_raises
from ortrim.devices.device import Device
from ortrim.devices.facts import LONGEST_WAIT_SECONDS, REPETITIONS, decide, throttled, throttling_text
from ortrim.devices.remote import RemoteDevice, RemoteMachine
from ortrim.errors import Diagnostic, UsageError
from ortrim.parity.runner import RunnerOutput, RunRequest

Result = TypeVar("Result")
Opener = Callable[[], Device]


@dataclass(frozen=True, kw_only=True)
class OnDevice(Generic[Result]):
    """What one device gave: a result, or the diagnostic of why there is none.

    `name` is as it was asked for; `seconds` is the time from `started` until it was closed.
    """

    name: str
    started: datetime
    seconds: float
    result: Result | None = None
    error: Diagnostic | None = None


def on_each(devices: Sequence[tuple[str, Opener]], action: Callable[[Device], Result]) -> tuple[OnDevice[Result], ...]:
    """Open each device, act on it, close it, all at the same time; return what each gave, in the order asked for.

    A single device gets no thread, so that nothing else is at work while it measures. A `Diagnostic` counts as that
    device's result, and so does `device-twice` when two names lead to one device; anything else is a fault of ours and
    is raised when all have ended. Ctrl-C, SIGTERM and SIGHUP stop what runs.
    """
    opened = _Opened()
    if len(devices) < 2:
        return tuple(_on_one(name, opener, action, opened) for name, opener in devices)
    with ThreadPoolExecutor(max_workers=len(devices), thread_name_prefix="device") as threads, _stopping() as asked:
        futures = [threads.submit(_in_thread, asked, name, opener, action, opened) for name, opener in devices]
        return tuple(future.result() for future in futures)


class _Opened:
    """The names of the devices that were opened, each of which only one thread may use."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._lock = threading.Lock()

    def claim(self, name: str) -> None:
        """Take a device; raises `UsageError` (`device-twice`) when it is taken."""
        with self._lock:
            if name in self._names:
                raise UsageError("device-twice", "the same device is given twice", where=f"--device {name}")
            self._names.add(name)


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Tell the threads to stop when this one is interrupted."""
    asked = threading.Event()
    with termination_raises():
        try:
            yield asked
        except (KeyboardInterrupt, SystemExit):
            asked.set()
            raise


def _in_thread(
    asked: threading.Event, name: str, opener: Opener, action: Callable[[Device], Result], opened: _Opened
) -> OnDevice[Result]:
    with stopped_by(asked):
        return _on_one(name, opener, action, opened)


def _on_one(name: str, opener: Opener, action: Callable[[Device], Result], opened: _Opened) -> OnDevice[Result]:
    started, begun = datetime.now(UTC), time.monotonic()
    result, error = _acted(opener, action, opened)
    return OnDevice(name=name, result=result, error=error, started=started, seconds=time.monotonic() - begun)


def _acted(
    opener: Opener, action: Callable[[Device], Result], opened: _Opened
) -> tuple[Result | None, Diagnostic | None]:
    try:
        with closing(opener()) as device:
            opened.claim(device.name)
            return action(device), None
    except Diagnostic as error:
        return None, error


SLEEP: Final[Callable[[float], None]] = time.sleep


class CooledDevice(RemoteDevice):
    """A remote device that is asked for its heat before and after each run.

    `heat` says why its times are marked as not meaningful, empty while they are not; `waited_seconds` is how long was
    waited for it to cool down, which is reported to `announce`, as long as it lasts.
    """

    def __init__(
        self,
        machine: RemoteMachine,
        announce: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = SLEEP,
    ) -> None:
        super().__init__(machine, before_run=self._cool_down)
        self.waited_seconds = 0.0
        self._thermal = machine.thermal
        self._announce = announce
        self._sleep = sleep

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run the runner once, and again when the device began to throttle meanwhile. Raises as `RemoteDevice` does."""
        output = super().run(request)
        for _ in range(REPETITIONS):
            if self.heat or not throttled(self._thermal()):
                return output
            output = super().run(request)
        after = self._thermal()
        if not self.heat and throttled(after):
            self._mark(throttling_text(after))
        return output

    def _cool_down(self) -> None:
        if self.heat:
            return
        while (decision := decide(self._thermal(), self.waited_seconds)).action == "wait":
            left = LONGEST_WAIT_SECONDS - self.waited_seconds
            self._announce(f"{self.name} cools down, {left:.0f} seconds at most: {decision.reason}")
            self._sleep(decision.seconds)
            self.waited_seconds += decision.seconds
        if decision.action == "mark":
            self._mark(decision.reason)

    def _mark(self, reason: str) -> None:
        self.heat = reason
        self.time_meaningful = False
