"""Keeps tests on this machine: whatever else they ask for is refused, and fails the test that asked."""

import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

PROXIES: Final = tuple(name for word in ("HTTP", "HTTPS", "ALL") for name in (f"{word}_PROXY", f"{word}_proxy".lower()))
"""Variables by which pip, git, apt, npm, gcloud and Python's own clients find a proxy."""
DIRECT: Final = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
ADDRESSED: Final = frozenset({"socket.connect", "socket.sendmsg", "socket.sendto"})
NAMED: Final = frozenset({"socket.getaddrinfo", "socket.gethostbyname"})
"""Python's audit events of the network: those with a socket and an address, and those that begin with a host."""


class LoopbackOnly:
    """Refuses addresses other than loopback's while a test is `guarded`."""

    def __init__(self) -> None:
        """Hear of the network for good: an audit hook cannot be removed, so that a process has one of these."""
        self.refused: list[str] = []
        self._guarded = False
        self._unserved = socket.socket()
        self._unserved.bind(("127.0.0.1", 0))  # and never listened to
        proxy = f"http://127.0.0.1:{self._unserved.getsockname()[1]}"
        self._environment = {**dict.fromkeys(PROXIES, proxy), **DIRECT}
        sys.addaudithook(self._hear)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        before = {name: os.environ.get(name) for name in self._environment}
        os.environ.update(self._environment)
        self.refused.clear()
        self._guarded = True
        try:
            yield
        finally:
            self._guarded = False
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value

    def check(self) -> None:
        """Fail a test that was refused an address, also when its own code, or a thread, has hidden that."""
        if self.refused:
            asked = ", ".join(dict.fromkeys(self.refused))
            pytest.fail(f"tests talk to loopback alone, unless marked `network`; asked for: {asked}", pytrace=False)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self._guarded or event not in ADDRESSED | NAMED:
            return
        host = _host(arguments[1]) if event in ADDRESSED else arguments[0]
        name = host.decode(errors="replace") if isinstance(host, bytes) else host
        if not isinstance(name, str) or _is_here(name):
            return
        if name.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        self.refused.append(name)
        self.check()


def _host(address: object) -> object:
    """Return the host of an IP address, which is a tuple; those of this machine's own sockets have none."""
    return address[0] if isinstance(address, tuple) and address else None


def _is_here(host: str) -> bool:
    if host in {"", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
