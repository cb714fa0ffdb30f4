"""A service on this machine's loopback that stands in for one on the internet, and can be told to fail."""

from __future__ import annotations

import signal
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final


def free_port() -> int:
    """Return a port of loopback that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


LOST: Final = 0
"""The status of an answer that never comes: the connection ends instead."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class LoopbackService(ABC):
    """Answers what `answer` says, unless `faults` holds an answer under the name of the request."""

    def __init__(self) -> None:
        self.faults: dict[str, list[Reply | None]] = defaultdict(list)
        self.meanwhile: dict[str, Callable[[], None]] = {}
        self.asked: list[Asked] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @abstractmethod
    def name_of(self, asked: Asked) -> str:
        """Return the name under which a request's faults are found."""

    @abstractmethod
    def answer(self, asked: Asked) -> Reply:
        """Return the answer to a request."""

    def names(self) -> list[str]:
        return [self.name_of(asked) for asked in self.asked]

    def reply(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        self.meanwhile.get(self.name_of(asked), lambda: None)()
        faults = self.faults.get(self.name_of(asked), [])
        fault = (faults.pop(0) if len(faults) > 1 else faults[0]) if faults else None
        return self.answer(asked) if fault is None else fault

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def interrupt() -> None:
    """Interrupt the main thread as Ctrl-C does, and take some time."""
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGINT)
    time.sleep(0.3)


def _handler(service: LoopbackService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = service.reply(Asked(method=self.command, path=self.path, headers=headers, body=body))
            self.close_connection = True
            if reply.status == LOST:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(reply.body)), "Connection": "close", **reply.headers}.items():
                self.send_header(name, value)
            with suppress(ConnectionError):  # whoever asked may have gone: interrupted, or sent enough
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else reply.body)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the base class asks for them

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
