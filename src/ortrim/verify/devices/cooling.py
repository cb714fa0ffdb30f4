"""A device that may get hot: each run waits until it is cool, and is repeated when the device throttled meanwhile."""

import time
from collections.abc import Callable
from typing import Final

from ortrim.verify.devices.base import RunnerOutput, RunRequest
from ortrim.verify.devices.remote import RemoteDevice, RemoteMachine
from ortrim.verify.devices.thermal import LONGEST_WAIT_SECONDS, REPETITIONS, decide, throttled, throttling_text

SLEEP: Final[Callable[[float], None]] = time.sleep


class CooledDevice(RemoteDevice):
    """A remote device that is asked for its heat before and after each run.

    `heat` says why its times are marked as not meaningful, empty while they are not; `waited_seconds` is how long was
    waited for it to cool down, which `announce` is told of, as long as it lasts.
    """

    def __init__(
        self,
        machine: RemoteMachine,
        announce: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = SLEEP,
    ) -> None:
        super().__init__(machine, before_run=self._cool_down)
        self.heat = ""
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
