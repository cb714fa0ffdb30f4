"""The adb server that is running already, asked without starting one and without ending it.

`adb` ends a server of another version and starts its own, under the feet of whoever uses it (Android Studio, another
test run). ortrim looks first. The protocol is that of `SERVICES.TXT` in Android's adb: four hexadecimal digits of
length, then the request; the answer is `OKAY`, a length, and the version in hexadecimal.
"""

import re
import socket
from collections.abc import Mapping
from contextlib import closing
from typing import Final

DEFAULT_PORT: Final = 5037
ANSWER_SECONDS: Final = 3.0
ANSWER: Final = re.compile(rb"OKAY[0-9a-fA-F]{4}([0-9a-fA-F]{1,8})")


def server_version(environment: Mapping[str, str]) -> int | None:
    """Return the protocol version of the running server that `adb` would use, None when there is none to ask.

    Whatever else listens there and does not answer as a server does counts as none: `adb` itself then says more.
    """
    try:
        with closing(_connected(environment)) as connection:
            connection.sendall(b"000chost:version")
            answer = _all_of(connection)
    except OSError:
        return None
    found = ANSWER.fullmatch(answer)
    return int(found[1], 16) if found else None


def _connected(environment: Mapping[str, str]) -> socket.socket:
    """Connect as `adb` does. Raises `OSError` when nobody listens, or the address is not one."""
    address = environment.get("ADB_SERVER_SOCKET", "")
    kind, _, rest = address.partition(":")
    if kind == "localfilesystem":
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(ANSWER_SECONDS)
        try:
            connection.connect(rest)
        except OSError:
            connection.close()
            raise
        return connection
    return socket.create_connection(_host_and_port(environment, rest if kind == "tcp" else ""), ANSWER_SECONDS)


def _host_and_port(environment: Mapping[str, str], address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host or environment.get("ANDROID_ADB_SERVER_ADDRESS", "") or "localhost"
    port = port or environment.get("ANDROID_ADB_SERVER_PORT", "") or str(DEFAULT_PORT)
    if not port.isdecimal() or int(port) > 65535:
        raise OSError(f"not a port: {port}")
    return host, int(port)


def _all_of(connection: socket.socket) -> bytes:
    """Read to the end, or as much as any answer has."""
    answer = b""
    while len(answer) < 64 and (part := connection.recv(64)):
        answer += part
    return answer
