"""A stand-in for BrowserStack's App Automate: what ortrim asks of it, with a build that goes as told."""

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from loopback_service import Asked, LoopbackService, Reply
from ortrim.verify.devices.harness import encode

USER: Final = "anna_x1"
KEY: Final = "geheimer-Schluessel-77"
"""The access key: nobody is to see it."""
DEVICE: Final = "Samsung Galaxy S23-13.0"
PHONE: Final = {"device": "Samsung Galaxy S23", "os": "Android", "os_version": "13.0"}
BUILD: Final = "741c219db523cb51d4cdf35723ce3bfc592fb74a"
SESSION: Final = "c9215a31aace1d2b885f1c7a9f5d73bce55b4543"
ESPRESSO: Final = "/app-automate/espresso/v2"
BEFORE: Final = "11-21 13:20:32.123  1234  1240 I ORTRIM  : "
"""What Android's log puts before a line."""


class BrowserStackService(LoopbackService):
    """Two phones; what may be told is public."""

    def __init__(self) -> None:
        super().__init__()
        self.statuses = ["queued", "running", "passed"]
        self.error: Any = None
        self.sessions = [SESSION]
        self.device_log = b""
        self.instrumentation_log = b"INSTRUMENTATION_CODE: -1\n"
        self.log_address = self.address
        self.uploads: dict[str, bytes] = {}
        self.stoppable = False

    def name_of(self, asked: Asked) -> str:
        """Return a request's name: method and the end of its path."""
        path = asked.path.removeprefix(ESPRESSO).removeprefix("/app-automate")
        for number, word in ((BUILD, "BUILD"), (SESSION, "SESSION")):
            path = path.replace(number, word)
        return f"{asked.method} {path}"

    def answer(self, asked: Asked) -> Reply:
        """Do what the service does."""
        if asked.headers.get("authorization") != authorization():
            return said({"error": "Unauthorized"}, 401)
        method, _, path = self.name_of(asked).partition(" ")
        known: dict[str, Callable[[Asked], Reply]] = {
            "GET /devices.json": self._devices,
            "POST /app": lambda asked: self._uploaded(asked, "app_url", "a"),
            "POST /test-suite": lambda asked: self._uploaded(asked, "test_suite_url", "b"),
            "POST /build": lambda _: said({"message": "Success", "build_id": BUILD}),
            "GET /builds/BUILD": self._build,
            "GET /builds/BUILD/sessions/SESSION": self._session,
            "GET /device-log": lambda _: Reply(body=self.device_log),
            "GET /instrumentation-log": lambda _: Reply(body=self.instrumentation_log),
            "DELETE /apps/a1": lambda _: self._deleted("a"),
            "DELETE /test-suites/b1": lambda _: self._deleted("b"),
        }
        if self.stoppable:
            known["POST /builds/BUILD/stop"] = lambda _: said({"message": "Success"})
        found = known.get(f"{method} {path}")
        return found(asked) if found else Reply(status=404, body=b"<html>404</html>")

    def build(self) -> dict[str, Any]:
        """Return what a build was last asked for."""
        body = next(asked.body for asked in reversed(self.asked) if self.name_of(asked) == "POST /build")
        asked_for: dict[str, Any] = json.loads(body)
        return asked_for

    def _devices(self, _: Asked) -> Reply:
        phones = [("Samsung Galaxy S23", "android", "13.0"), ("Google Pixel 7", "android", "13.0")]
        rest = [("iPhone 15", "ios", "17")]
        return said(
            [{"device": name, "os": system, "os_version": v, "realMobile": True} for name, system, v in phones + rest]
        )

    def _uploaded(self, asked: Asked, key: str, letter: str) -> Reply:
        self.uploads[letter] = asked.body
        return said({key: f"bs://{letter}1", "expiry": "2026-12-21 07:27:54 UTC"})

    def _deleted(self, letter: str) -> Reply:
        del self.uploads[letter]
        return said({"success": {"message": "deleted"}})

    def _build(self, _: Asked) -> Reply:
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        sessions = [{"id": session, "status": status} for session in self.sessions]
        return said({"id": BUILD, "status": status, "devices": [{**PHONE, "sessions": sessions}]})

    def _session(self, _: Asked) -> Reply:
        case = {
            "name": "requests",
            "status": "passed",
            "device_log": f"{self.log_address}/device-log" if self.device_log else "",
            "instrumentation_log": f"{self.log_address}/instrumentation-log",
        }
        tests = {"count": 1, "data": [{"class": "RequestsTest", "testcases": [case]}]}
        return said({"id": SESSION, "status": "x", "testcases": tests, "error": self.error})


def authorization() -> str:
    """Return the header by which the user is known."""
    return "Basic " + base64.b64encode(f"{USER}:{KEY}".encode()).decode()


def said(data: Any, status: int = 200) -> Reply:
    """Return an answer in JSON."""
    return Reply(status=status, body=json.dumps(data).encode(), headers={"Content-Type": "application/json"})


def log_of(payload: bytes) -> bytes:
    """Return a device's log in which a payload travels, among what else is logged."""
    lines = [f"{BEFORE}hello", *(BEFORE + line for line in encode(payload)), f"{BEFORE}bye"]
    return "\n".join(lines).encode() + b"\n"
