"""A headless Chromium that opens a page from a file, spoken to over a pipe in its own protocol (CDP)."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ortrim.base.command import run
from ortrim.errors import ToolError

PROGRAMS: Final = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser", "chrome")
"""What systems call it, and Chrome, which speaks the same protocol; `.ci/run` has the same list."""
SECONDS: Final = 60.0
SWITCHES: Final = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking")


class Browser:
    """One open page: `events` are what the browser told meanwhile."""

    def __init__(self, reading: int, writing: int) -> None:
        self.events: list[dict[str, Any]] = []
        self._reading, self._writing = reading, writing
        self._left = b""
        self._number = 0
        self._session: str | None = None

    def attach(self) -> None:
        """Speak to a page of its own from here on, and hear of its console, its log and what it asks the network."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self.events.append(answer)
        raise AssertionError(f"no answer to {method}")

    def open(self, path: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        while self.value("document.readyState + location.protocol") != "completefile:":
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def press(self, key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            words = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
            self.call("Input.dispatchKeyEvent", **words, **({"text": text} if text and kind == "keyDown" else {}))

    def scheme(self, name: str) -> None:
        """Prefer `dark` or `light`, as the system's setting would."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def width(self, pixels: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=pixels, height=900, deviceScaleFactor=1, mobile=False)

    def complaints(self) -> list[str]:
        """Return what went wrong on the page: its log, its console, exceptions."""
        bad = {"Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"}
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in bad]

    def requests(self) -> list[str]:
        sent = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            part = os.read(self._reading, 1 << 16)
            assert part, "the browser has ended"
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return dict(json.loads(message))


def browser_program() -> str | None:
    """Return the first program on PATH that shows a page from a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        page.write_text("<p>found</p>")
        words = (*_switches(Path(folder, "profile")), "--dump-dom", page.as_uri())
        return next((name for name in PROGRAMS if shutil.which(name) and "found" in _printed(name, words)), None)


def _printed(name: str, words: tuple[str, ...]) -> str:
    try:
        return run((name, *words), timeout_seconds=SECONDS).stdout
    except ToolError:
        return ""


def _switches(profile: Path) -> tuple[str, ...]:
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    return (*SWITCHES, *root, f"--user-data-dir={profile}")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    to_browser, from_browser = os.pipe(), os.pipe()
    words = [browser_program() or PROGRAMS[0], *_switches(profile), "--remote-debugging-pipe"]
    script = f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
    started = subprocess.Popen(
        ["bash", "-c", script, "bash", *words],  # noqa: S607 - as PATH has it
        pass_fds=(to_browser[0], from_browser[1]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        page = Browser(from_browser[0], to_browser[1])
        page.attach()
        yield page
    finally:
        started.terminate()
        started.wait(timeout=SECONDS)
        os.close(to_browser[1])
        os.close(from_browser[0])
