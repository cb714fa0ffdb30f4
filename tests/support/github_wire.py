"""The HTTP under the stand-in for GitHub: replies, and what becomes of them on their way."""

import select
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from github_state import VirtualClock

PATIENCE_SECONDS: Final = 10
"""How long, in real time, a reader of a body that drips may take to look at the clock."""


@dataclass(frozen=True, kw_only=True)
class Drip:
    """How a slow body comes: `size` bytes, and after them so many seconds nothing."""

    size: int
    seconds: float


@dataclass(kw_only=True)
class Reply:
    """An answer, and what becomes of it on its way: `cut` is after how many bytes of the body the link breaks."""

    status: int = 200
    body: bytes | memoryview = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    has_length: bool = True
    silent: bool = False
    drip: Drip | None = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as it came, and the status of its answer."""

    server: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    status: int


class LoopbackServer(ThreadingHTTPServer):
    """Answers each request with what `reply_to` says, in the time of `clock`."""

    daemon_threads = True

    def __init__(self, reply_to: Callable[["Exchange", bytes], Reply], clock: VirtualClock) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.reply_to = reply_to
        self.clock = clock

    def handle_error(self, *_: Any) -> None:
        """Keep quiet: clients hang up on purpose."""


class Exchange(BaseHTTPRequestHandler):
    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the acknowledgement of its headers

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def do_DELETE(self) -> None:
        self._answer(b"")

    def date_time_string(self, timestamp: float | None = None) -> str:
        return formatdate(self.server.clock.now if timestamp is None else timestamp, usegmt=True)

    def _drip(self, body: bytes | memoryview, drip: Drip, looks: int) -> None:
        """Let the body come bit by bit; time passes once the reader has looked at the clock after each."""
        for start in range(0, len(body), drip.size):
            self.wfile.write(body[start : start + drip.size])
            looks += 1
            self._await_reader(looks)
            self.server.clock.now += drip.seconds

    def _await_reader(self, looks: int) -> None:
        """Wait until the clock was read so often. Raises `ConnectionError` when the reader has hung up."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while self.server.clock.looks < looks:
            assert time.monotonic() < ends, "nobody looks at the clock"
            if select.select([self.connection], [], [], 0.001)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                raise ConnectionAbortedError

    def _answer(self, body: bytes) -> None:
        reply = self.server.reply_to(self, body)
        if reply.silent:
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.has_length and reply.status not in {204, 304}:
            self.send_header("Content-Length", str(len(reply.body)))
        if not reply.has_length:
            self.send_header("Connection", "close")
        looks = self.server.clock.looks
        self.end_headers()
        shown = reply.body if reply.cut is None else reply.body[: reply.cut]
        if reply.drip is None:
            self.wfile.write(shown)
        else:
            self._drip(shown, reply.drip, looks + 1)
        if reply.cut is not None or not reply.has_length:
            self.close_connection = True
