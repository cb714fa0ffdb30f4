"""A device that may get hot: each run waits until it is cool, and is repeated when the device throttled meanwhile."""

import time
from collections.abc import Callable
from typing import Final

from ortrim.core.measurements import Host
from ortrim.verify.devices.base import RunnerOutput, RunRequest
from ortrim.verify.devices.remote import RemoteDevice
from ortrim.verify.devices.thermal import REPETITIONS, Thermal, decide, throttled, throttling_text
from ortrim.verify.devices.transport import Transport

SLEEP: Final[Callable[[float], None]] = time.sleep


class CooledDevice(RemoteDevice):
    """A remote device that `thermal` is asked of before and after each run.

    `heat` says why its times are marked as not meaningful, empty while they are not; `waited_seconds` is how long was
    waited for it to cool down.
    """

    def __init__(
        self,
        *,
        name: str,
        transport: Transport,
        base: str,
        describe: Callable[[], Host],
        thermal: Callable[[], Thermal],
        launcher: tuple[str, ...] = (),
        time_meaningful: bool = True,
        sleep: Callable[[float], None] = SLEEP,
    ) -> None:
        super().__init__(
            name=name,
            transport=transport,
            base=base,
            describe=describe,
            launcher=launcher,
            before_run=self._cool_down,
            time_meaningful=time_meaningful,
        )
        self.heat = ""
        self.waited_seconds = 0.0
        self._thermal = thermal
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
            self._sleep(decision.seconds)
            self.waited_seconds += decision.seconds
        if decision.action == "mark":
            self._mark(decision.reason)

    def _mark(self, reason: str) -> None:
        self.heat = reason
        self.time_meaningful = False
