"""The `adb` program of this machine: found, looked at once, and run with the user's own server.

A server holds the USB devices, so a second one would see none of them: ortrim uses the one that the environment names
(`ADB_SERVER_SOCKET`, `ANDROID_ADB_SERVER_PORT`) or the usual one, starts it if need be, and leaves it running as `adb`
does. adb is not pinned: it has to fit the server that the user's other tools run, and the wheels that carry it
(`adbutils`) are for x86-64 alone on Linux and hold no licence of the program.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.base import Tool, install_command, require
from ortrim.tools.command import Completed, run
from ortrim.verify.devices.adb_server import server_version
from ortrim.verify.devices.run_errors import MOST_PRINTED_BYTES

ADB: Final = Tool(name="adb", package="adb", minimum=(1, 0, 41))
"""1.0.41 is the protocol of every platform-tools since 2019; the last number is what client and server compare."""
PACKAGE_HINT: Final = (
    "run: {}; the package is called android-tools on Fedora and Arch, android-platform-tools in Homebrew"
)
START_SECONDS: Final = 30.0


@dataclass(frozen=True, kw_only=True)
class AdbClient:
    """`adb` as found, and the whole environment that it is run with."""

    program: Path
    environment: Mapping[str, str]

    def run(self, *words: str | Path, timeout_seconds: float) -> Completed:
        """Run adb to its end, whatever its exit code. Raises `ToolError` (`tool-timeout`, `tool-endless`, ...)."""
        # LC_ALL: what the system says inside adb's messages is told apart by its words.
        environment = {**self.environment, "LC_ALL": "C"}
        command = (self.program, *words)
        return run(command, environment=environment, timeout_seconds=timeout_seconds, most_bytes=MOST_PRINTED_BYTES)


def find_adb(environment: Mapping[str, str] | None = None) -> AdbClient:
    """Return adb with a server that runs.

    `environment` replaces this process's own. Raises `ToolError`: `tool-missing`, `tool-broken`, `tool-too-old`,
    `adb-server-mismatch` (another program's server would be ended by ours), `adb-server-failed`.
    """
    try:
        installed = require(ADB)
    except ToolError as error:
        hint = PACKAGE_HINT.format(install_command(ADB.package))
        raise ToolError(error.reference, error.what, where=error.where, why=error.why, hint=hint) from error
    client = AdbClient(program=installed.path, environment=dict(os.environ if environment is None else environment))
    _check_server(client, int(installed.version.split(".")[-1]))
    _start_server(client)
    return client


def _check_server(client: AdbClient, version: int) -> None:
    running = server_version(client.environment)
    if running not in {None, version}:
        what = f"the adb server that is running has version {running}, this adb has {version}"
        why = "adb would end that server, and with it whatever uses it"
        hint = "put the adb of that server first on PATH, or end the server: adb kill-server"
        raise ToolError("adb-server-mismatch", what, where=str(client.program), why=why, hint=hint)


def _start_server(client: AdbClient) -> None:
    done = client.run("start-server", timeout_seconds=START_SECONDS)
    if done.returncode != 0:
        why = "\n".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        hint = "another program may hold the port; name a free one in ANDROID_ADB_SERVER_PORT"
        raise ToolError("adb-server-failed", "adb cannot start its server", where="adb", why=why, hint=hint)
