import socket
from pathlib import Path

import pytest

from ortrim.devices import adb
from ortrim.devices.adb import find_adb
from ortrim.errors import ExitCode, ToolError

VERSION = "echo 'Android Debug Bridge version 1.0.41'; echo 'Version 29.0.6-debian'"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an adb of the test's own alone on PATH, where no server runs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"localfilesystem:{tmp_path / 'absent'}")
    return tmp_path / "adb"


def write(program: Path, script: str) -> None:
    program.write_text(f'#!/bin/sh\ncase "$1" in --version) {VERSION};; *) {script};; esac\n')
    program.chmod(0o755)


def refused() -> ToolError:
    with pytest.raises(ToolError) as caught:
        find_adb()
    assert caught.value.exit_code == ExitCode.TOOL
    return caught.value


def test_adb_is_found_and_its_server_started(program: Path, tmp_path: Path) -> None:
    """The program of PATH is taken, in the user's environment with C's locale."""
    write(program, f'echo "$1 $LC_ALL $ADB_SERVER_SOCKET" >> {tmp_path}/calls')
    client = find_adb()
    assert client.program == program
    assert (tmp_path / "calls").read_text() == f"start-server C localfilesystem:{tmp_path}/absent\n"


def test_without_adb(program: Path) -> None:
    """How to install it is said, by the name that this system has for it."""
    write(program.with_name("dnf"), "")
    program.unlink(missing_ok=True)
    error = refused()
    assert error.code == "tool-missing"
    assert error.hint.endswith("dnf install android-tools")


def test_an_old_adb(program: Path) -> None:
    """An adb of another protocol than all of today's is refused."""
    program.write_text("#!/bin/sh\necho 'Android Debug Bridge version 1.0.39'\n")
    program.chmod(0o755)
    assert refused().code == "tool-too-old"


def test_a_broken_adb(program: Path) -> None:
    """A program that names no version is not taken for adb."""
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    assert refused().code == "tool-broken"


def test_a_server_that_does_not_start(program: Path) -> None:
    """The program's own words are passed on."""
    write(program, "echo 'cannot bind: Address already in use' >&2; exit 1")
    error = refused()
    assert (error.code, error.why) == ("adb-server-failed", "cannot bind: Address already in use")


@pytest.mark.parametrize("version", [39, 42])
def test_another_programs_server_is_left_alone(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """An adb would end a server of another version; so it is not even called."""
    write(program, f"echo called >> {tmp_path}/calls")
    monkeypatch.setattr(adb, "server_version", lambda _: version)
    error = refused()
    assert error.code == "adb-server-mismatch"
    assert f"version {version}" in error.what
    assert not (tmp_path / "calls").exists()


def test_a_server_of_the_same_version_is_used(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's own server has the devices."""
    write(program, "true")
    monkeypatch.setattr(adb, "server_version", lambda _: 41)
    assert find_adb().program == program


def test_another_environment(program: Path, tmp_path: Path) -> None:
    """A server of one's own is named in the environment that is handed over."""
    write(program, f'echo "$ANDROID_ADB_SERVER_PORT" >> {tmp_path}/calls')
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        find_adb({"ANDROID_ADB_SERVER_PORT": port})
    assert (tmp_path / "calls").read_text() == f"{port}\n"
