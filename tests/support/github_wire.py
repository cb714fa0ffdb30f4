"""The HTTP under the stand-in for GitHub: replies, and what becomes of them on their way."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(kw_only=True)
class Reply:
    """An answer, and what becomes of it on its way: `cut` is after how many bytes of the body the link breaks."""

    status: int = 200
    body: bytes | memoryview = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    has_length: bool = True
    silent: bool = False
    """Whether the link breaks before a single byte."""


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
    """Answers each request with what `reply_to` says, and tells the time that `now` says."""

    daemon_threads = True

    def __init__(self, reply_to: Callable[["Exchange", bytes], Reply], now: Callable[[], float]) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.reply_to = reply_to
        self.now = now

    def handle_error(self, *_: Any) -> None:
        """Keep quiet: clients hang up on purpose."""


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    server: LoopbackServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the acknowledgement of its headers

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        """Answer."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Answer."""
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def do_DELETE(self) -> None:
        """Answer."""
        self._answer(b"")

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Tell the stand-in's own time."""
        return formatdate(self.server.now() if timestamp is None else timestamp, usegmt=True)

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
        self.end_headers()
        self.wfile.write(reply.body if reply.cut is None else reply.body[: reply.cut])
        if reply.cut is not None or not reply.has_length:
            self.close_connection = True
