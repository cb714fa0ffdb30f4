import socket
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from ortrim.base.command import run

ROOT = Path(__file__).parents[2]
ELSEWHERE = "192.0.2.1"
"""An address for documentation, which no machine has (RFC 5737)."""


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> list[str]:
    """Return what this test was refused; emptied by it, or it fails."""
    found: list[str] = request.config.pluginmanager.getplugin(str(ROOT / "tests" / "conftest.py")).LOOPBACK.refused
    return found


def test_an_address_elsewhere_is_refused_at_once(refused: list[str]) -> None:
    """By its number or its name, over TCP, UDP and what is built on them; the name is in the message."""
    with pytest.raises(pytest.fail.Exception, match=r"loopback alone.*192\.0\.2\.1"), socket.socket() as asking:
        asking.connect((ELSEWHERE, 80))
    datagram = socket.socket(type=socket.SOCK_DGRAM)
    with pytest.raises(pytest.fail.Exception), datagram:
        datagram.sendto(b"x", (ELSEWHERE, 53))
    with pytest.raises(pytest.fail.Exception, match=r"host\.example"):
        socket.getaddrinfo("host.example", 443)
    assert refused == [ELSEWHERE, ELSEWHERE, "host.example"]
    refused.clear()


def test_this_machine_is_not_refused(tmp_path: Path) -> None:
    """Loopback in both families, and sockets that are files."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        with socket.create_connection(("localhost", server.getsockname()[1]), timeout=5) as there:
            assert there.getpeername()[0] == "127.0.0.1"
    with suppress(OSError), socket.socket(socket.AF_INET6) as six:
        six.connect(("::1", 9))
    with socket.socket(socket.AF_UNIX) as local, pytest.raises(FileNotFoundError):
        local.connect(str(tmp_path / "absent"))


def test_a_name_that_cannot_exist_is_not_looked_up() -> None:
    """As a resolver answers, without one."""
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("mirror.invalid", 443)


def test_a_child_reaches_nobody() -> None:
    program = f"import urllib.request; urllib.request.urlopen('http://{ELSEWHERE}/', timeout=2)"
    done = run((sys.executable, "-I", "-c", program))
    assert done.returncode == 1
    assert "Connection refused" in done.stderr
    assert urllib.request.getproxies()["https"].startswith("http://127.0.0.1:")
