"""Stores in which a team could share compiled objects, on this machine's loopback, made to be killed."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

from ortrim.base.command import run

PASSWORD: Final = "geheim-77"  # noqa: S105 - a secret to look for
PATIENCE_SECONDS: Final = 30.0


class RedisServer:
    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.pidfile = folder / "redis.pid"
        options = ("--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder))
        start = ("--requirepass", PASSWORD, "--daemonize", "yes", "--pidfile", str(self.pidfile))
        assert run(("redis-server", *options, *start), timeout_seconds=PATIENCE_SECONDS).returncode == 0
        wait_until(lambda: is_open(self.port))

    def kill(self) -> None:
        """End it at once, as a machine that loses its power does."""
        with suppress(FileNotFoundError, ProcessLookupError):
            self.send(signal.SIGKILL)
        self.pidfile.unlink(missing_ok=True)

    def send(self, number: signal.Signals) -> None:
        os.kill(int(self.pidfile.read_text()), number)


class ObjectServer:
    """As much of S3, or of any store with GET and PUT, as is used; `objects` were put, `accounts` asked."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.accounts: set[str | None] = set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self.server.server_port
        Thread(target=self.server.serve_forever, daemon=True).start()

    def kill(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def _handler(store: ObjectServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            store.accounts.add(self.headers.get("Authorization"))
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            code, body = self._result(content)
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _result(self, content: bytes) -> tuple[int, bytes]:
            if self.command == "PUT":
                store.objects[self.path] = content
                return 200, b""
            found = store.objects.get(self.path)
            return (404, b"") if found is None else (200, found)

        do_GET = do_HEAD = do_PUT = _answer  # noqa: N815 - the base class asks for them

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


@contextmanager
def killed_at_the_end(server: RedisServer | ObjectServer) -> Iterator[None]:
    try:
        yield
    finally:
        server.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something has come about. Raises `TimeoutError` when it has not in time."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > give_up:
            raise TimeoutError
        time.sleep(0.05)


def servers_of(socket_path: str) -> tuple[int, ...]:
    """Return the processes that were given this socket in their environment: sccache's server, while it runs."""
    mark = f"SCCACHE_SERVER_UDS={socket_path}\0".encode()
    return tuple(int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in _content(path))


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
