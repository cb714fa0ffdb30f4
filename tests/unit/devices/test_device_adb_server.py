import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ortrim.devices.adb import server_version


@contextmanager
def answering(listener: socket.socket, answer: bytes) -> Iterator[list[bytes]]:
    """Answer one request at a listening socket, and close; yields what was asked."""
    listener.listen()
    asked: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(64))
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    yield asked
    listener.close()
    thread.join()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        yield made


def port_of(listener: socket.socket) -> str:
    return str(listener.getsockname()[1])


def test_a_server_is_asked(listener: socket.socket) -> None:
    """The server says its version in hexadecimal."""
    with answering(listener, b"OKAY00040029") as asked:
        assert server_version({"ANDROID_ADB_SERVER_PORT": port_of(listener)}) == 41
    assert asked == [b"000chost:version"]


@pytest.mark.parametrize("form", ["tcp:{port}", "tcp:localhost:{port}", "tcp:127.0.0.1:{port}"])
def test_the_address_that_adb_takes_is_taken(listener: socket.socket, form: str) -> None:
    """`ADB_SERVER_SOCKET` goes before the port."""
    environment = {"ADB_SERVER_SOCKET": form.format(port=port_of(listener)), "ANDROID_ADB_SERVER_PORT": "1"}
    with answering(listener, b"OKAY00040028"):
        assert server_version(environment) == 40


def test_a_server_at_a_file() -> None:
    with tempfile.TemporaryDirectory(prefix="o-", dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "s"
        listener.bind(str(path))
        with answering(listener, b"OKAY00040029"):
            assert server_version({"ADB_SERVER_SOCKET": f"localfilesystem:{path}"}) == 41


@pytest.mark.parametrize(
    "answer", [b"", b"OKAY", b"OKAY0004", b"OKAY0004zzzz", b"FAIL0003bad", b"HTTP/1.1 400 Bad\r\n"]
)
def test_whatever_else_listens_is_no_server(listener: socket.socket, answer: bytes) -> None:
    """Another program's answer, or none, is not a version."""
    with answering(listener, answer):
        assert server_version({"ANDROID_ADB_SERVER_PORT": port_of(listener)}) is None


@pytest.mark.parametrize(
    "environment",
    [
        {"ANDROID_ADB_SERVER_PORT": "1"},
        {"ANDROID_ADB_SERVER_PORT": "x"},
        {"ANDROID_ADB_SERVER_PORT": "70000"},
        {"ADB_SERVER_SOCKET": "tcp:a:b"},
        {"ADB_SERVER_SOCKET": "localfilesystem:/no/such/socket"},
        {"ADB_SERVER_SOCKET": "localfilesystem:" + "x" * 200},
    ],
)
def test_no_server(environment: dict[str, str]) -> None:
    """Where nobody listens, and at what is no address, there is no server."""
    assert server_version(environment) is None
