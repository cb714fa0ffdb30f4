"""An HTTP proxy on loopback that cuts, drips and lies; `way` says how, one of `WAYS`."""

import gzip
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

PAGE: Final = b"<!DOCTYPE html>\n<html><body>Please log in to use this network.</body></html>\n"
ADDRESS: Final = "http://files.invalid/archive.tar.gz"


class LyingProxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.way = "good"
        self.asked: list[str] = []
        self.ended = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: LyingProxy

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.close_connection = True
        with suppress(ConnectionError):
            WAYS[self.server.way](self)

    def do_CONNECT(self) -> None:
        self.do_GET()

    def answer(self, body: bytes, *, status: int = 200, length: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def drip(self) -> None:
        """Send a byte every ten milliseconds, without an end."""
        self.answer(b"", length=len(self.server.content))
        for place in range(len(self.server.content)):
            self.wfile.write(self.server.content[place : place + 1])
            if self.server.ended.wait(0.01):
                return

    def flipped(self) -> bytes:
        content = bytearray(self.server.content)
        content[len(content) // 2] ^= 1
        return bytes(content)

    def after(self, failures: int, status: int) -> None:
        if len(self.server.asked) <= failures:
            self.answer(b"", status=status)
        else:
            self.answer(self.server.content)

    def silence(self) -> None:
        self.server.ended.wait()

    def vanish(self) -> None:
        self.connection.shutdown(socket.SHUT_RDWR)


WAYS: Final[dict[str, Callable[[_Handler], None]]] = {
    "good": lambda to: to.answer(to.server.content),
    "cut": lambda to: to.answer(to.server.content[:1000], length=len(to.server.content)),
    "too long a length": lambda to: to.answer(to.server.content, length=len(to.server.content) + 1),
    "too short a length": lambda to: to.answer(to.server.content, length=len(to.server.content) - 1),
    "no number for a length": lambda to: to.answer(to.server.content, length=-5),
    "drip": _Handler.drip,
    "silence": _Handler.silence,
    "vanish": _Handler.vanish,
    "packed": lambda to: to.answer(gzip.compress(to.server.content), Content_Encoding="gzip"),
    "packed and cut": lambda to: to.answer(gzip.compress(to.server.content)[:-99], Content_Encoding="gzip"),
    "labelled as packed": lambda to: to.answer(to.server.content, Content_Encoding="gzip"),
    "page": lambda to: to.answer(PAGE, Content_Type="text/html"),
    "changed": lambda to: to.answer(to.flipped()),
    "login": lambda to: to.answer(b"", status=407, Proxy_Authenticate="Basic"),
    "forbidden": lambda to: to.answer(PAGE, status=403),
    "circle": lambda to: to.answer(b"", status=302, Location=ADDRESS),
    "to a file": lambda to: to.answer(b"", status=302, Location="file:///etc/passwd"),
    "trouble that passes": lambda to: to.after(2, 502),
    "trouble that stays": lambda to: to.answer(b"", status=503),
    "a part": lambda to: to.answer(to.server.content[10:], status=206, Content_Range="bytes 10-/*"),
    "nothing": lambda to: to.answer(b"", status=204),
}


@contextmanager
def lying_proxy(content: bytes) -> Iterator[LyingProxy]:
    proxy = LyingProxy(content)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    with closing(proxy.socket):
        yield proxy
        proxy.ended.set()
        proxy.shutdown()
        thread.join()
