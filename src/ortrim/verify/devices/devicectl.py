"""iPhones and iPads on a Mac's cable. A phone runs apps alone, so that an app of ours carries all that is to be run."""

import dataclasses
import json
import secrets
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ortrim.core.harness import HarnessContent, PhoneApp
from ortrim.core.measurements import Host
from ortrim.errors import Diagnostic, ToolError
from ortrim.storage.files import storage_errors
from ortrim.tools.xcrun import Xcrun, find_xcrun
from ortrim.verify.devices.base import RunnerOutput, RunRequest
from ortrim.verify.devices.devicectl_client import DEVICECTL, Answer, PhoneClient, list_phones
from ortrim.verify.devices.devicectl_listing import Phone, choose_phone
from ortrim.verify.devices.farms.harness_requests import told
from ortrim.verify.devices.phone_ends import RunEnd, phone_host, read_end
from ortrim.verify.devices.phone_requests import phone_content
from ortrim.verify.devices.run_errors import endless_output
from ortrim.verify.devices.thermal import Thermal, throttling_text
from ortrim.verify.runner_output import never_ended, place_of, read_output

START_SECONDS: Final = 30.0
"""For starting the app, besides the run itself."""
NONCE_BYTES: Final = 8

MakeApp = Callable[[HarnessContent], PhoneApp]
"""Makes the app that carries what it is given, or raises a `Diagnostic` that says how to make it."""


class PhoneDevice:
    """A phone on which nothing runs before `prepare` has installed our app; `close` removes that.

    Each run is a process of its own. `heat` says why its times are not meaningful, empty while they are.
    """

    memory_meaningful = True

    def __init__(self, xcrun: Xcrun, phone: Phone, make_app: MakeApp) -> None:
        self.name = f"{DEVICECTL}:{phone.name or phone.udid}"
        self.time_meaningful = True
        self.heat = ""
        self._phone = phone
        self._client = PhoneClient(xcrun=xcrun, identifier=phone.identifier, where=self.name)
        self._make_app = make_app
        self._app: PhoneApp | None = None
        self._numbers: dict[RunRequest, int] = {}
        self._ends: list[RunEnd] = []

    def prepare(self, requests: Sequence[RunRequest]) -> None:
        """Install the app that carries all requests. Raises what `make_app` and `PhoneClient.install` raise."""
        app = self._make_app(phone_content(requests))
        self._numbers = {told(request): number for number, request in enumerate(requests)}
        self._app = app
        self._client.install(app.path)

    def facts(self) -> Host:
        """Describe the phone, as it was after the last run."""
        host = phone_host(self._phone, self._ends)
        return dataclasses.replace(host, time_meaningful=self.time_meaningful)

    def run(self, request: RunRequest) -> RunnerOutput:
        """Run one of the requests that `prepare` was told of.

        Raises `VerifyError`: `runner-timeout`, `endless-output`, those of `read_end` and of `read_output`;
        `LookupError` for a request that is none of these: a fault of the program.
        """
        assert self._app is not None, "prepare comes first"
        number = self._numbers.get(told(request))
        if number is None:
            raise LookupError(f"{self.name} was not told of this run: {place_of(request)}")
        nonce = secrets.token_hex(NONCE_BYTES)
        answer = self._launched(self._app, request, number, nonce)
        with storage_errors(Path(tempfile.gettempdir())), tempfile.TemporaryDirectory(prefix="ortrim-") as place:
            copied = self._client.copy_from(self._app.identifier, f"Documents/ortrim-{nonce}", Path(place))
            ended = read_end(answer, copied, Path(place), request, self.name)
        self._note(ended.end)
        return read_output(ended.completed, request)

    def close(self) -> None:
        """Remove the app, and with it all that it wrote."""
        if self._app is not None:
            with suppress(Diagnostic):
                self._client.uninstall(self._app.identifier)
        self._app = None

    def _launched(self, app: PhoneApp, request: RunRequest, number: int, nonce: str) -> Answer:
        environment = json.dumps({"ORTRIM_RUN": str(number), "ORTRIM_NONCE": nonce})
        try:
            return self._client.launch(app.identifier, environment, request.repetition.timeout_seconds + START_SECONDS)
        except ToolError as error:
            match error.reference:
                case "tool-timeout":
                    raise never_ended(request) from error
                case "tool-endless":
                    raise endless_output(place_of(request)) from error
                case _:
                    raise

    def _note(self, end: RunEnd | None) -> None:
        """Keep what the phone said of itself, and mark its times when it throttled."""
        if end is None:
            return
        self._ends.append(end)
        if not self.heat and end.throttled:
            self.heat = throttling_text(Thermal(status=end.status, battery_celsius=None))
            self.time_meaningful = False


def open_phone(name: str, make_app: MakeApp, *, xcrun: Xcrun | None = None) -> PhoneDevice:
    """Return the phone of a name, UDID or identifier, or the only one that there is.

    Raises what `find_xcrun`, `list_phones` and `choose_phone` raise.
    """
    xcrun = xcrun or find_xcrun(DEVICECTL)
    return PhoneDevice(xcrun, choose_phone(list_phones(xcrun), name), make_app)
