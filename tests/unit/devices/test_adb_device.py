import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices import adb
from ortrim.devices.adb import adb_error, find_adb, known_error, server_version, state_error
from ortrim.errors import ExitCode, ToolError
from program_files import write_program

VERSION = "echo 'Android Debug Bridge version 1.0.41'; echo 'Version 29.0.6-debian'"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an adb of the test's own alone on PATH, where no server runs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ADB_SERVER_SOCKET", f"localfilesystem:{tmp_path / 'absent'}")
    return tmp_path / "adb"


def write(program: Path, script: str) -> None:
    write_program(program, f'case "$1" in --version) {VERSION};; *) {script};; esac')


def refused() -> ToolError:
    with pytest.raises(ToolError) as caught:
        find_adb()
    assert caught.value.exit_code == ExitCode.TOOL
    return caught.value


def test_adb_is_found_and_its_server_started(program: Path, tmp_path: Path) -> None:
    """The program of PATH is taken, in the user's environment with C's locale."""
    write(program, f'echo "$1 $LC_ALL $ADB_SERVER_SOCKET" >> {tmp_path}/calls')
    client = find_adb()
    assert client.path == program
    assert (tmp_path / "calls").read_text() == f"start-server C localfilesystem:{tmp_path}/absent\n"


def test_without_adb(program: Path) -> None:
    """How to install it is said, by the name that this system has for it."""
    write(program.with_name("dnf"), "")
    program.unlink(missing_ok=True)
    error = refused()
    assert error.code == "tool-missing"
    assert error.hint.endswith("dnf install android-tools")


@pytest.mark.parametrize(
    ("script", "code"),
    [("echo 'Android Debug Bridge version 1.0.39'", "tool-too-old"), ("exit 1", "tool-broken")],
)
def test_an_adb_that_will_not_do(program: Path, script: str, code: str) -> None:
    """It is of another protocol than all of today's, or names no version."""
    write_program(program, script)
    assert refused().code == code


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
    write(program, "true")
    monkeypatch.setattr(adb, "server_version", lambda _: 41)
    assert find_adb().path == program


def test_another_environment(program: Path, tmp_path: Path) -> None:
    """A server of one's own is named in the environment that is handed over."""
    write(program, f'echo "$ANDROID_ADB_SERVER_PORT" >> {tmp_path}/calls')
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = str(closed.getsockname()[1])
        find_adb({"ANDROID_ADB_SERVER_PORT": port})
    assert (tmp_path / "calls").read_text() == f"{port}\n"


DATA = Path(__file__).parent / "data" / "adb"


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("push-disk-full", "device-full"),
        ("push-offline", "device-lost"),
        ("shell-offline", "device-lost"),
        ("shell-unknown-device", "device-lost"),
        ("push-not-permitted", None),
        ("pull-absent", None),
    ],
)
def test_recorded_outputs(name: str, reference: str | None) -> None:
    """What adb says is told apart; what it says of files that are not there is left to whoever asked."""
    error = known_error((DATA / f"{name}.txt").read_text(), "x")
    assert (error.code if error else None) == reference
    assert error is None or (error.where == "adb:x" and error.why and error.hint)


@pytest.mark.parametrize(
    ("printed", "reference"),
    [
        ("error: device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", "device-unauthorized"),
        ("error: device still authorizing", "device-unauthorized"),
        ("error: insufficient permissions for device: user in plugdev group", "device-no-permission"),
        ("error: no devices/emulators found", "device-lost"),
        ("remote couldn't create file: Permission denied", "device-not-permitted"),
        ("remote couldn't create file: Read-only file system", "device-not-permitted"),
        ("remote write failed: Disk quota exceeded", "device-full"),
        ("error: closed", "device-lost"),
        ("", "device-lost"),
    ],
)
def test_words_of_adb(printed: str, reference: str) -> None:
    """Each cause has its reference; without a word, the device has gone."""
    assert adb_error(printed, "x").code == reference


@given(st.text(max_size=200))
def test_any_output_has_a_diagnostic(printed: str) -> None:
    assert len(adb_error(printed, "x").why.split("\n")) <= 4


@given(st.text(max_size=20))
def test_any_state_has_a_diagnostic(state: str) -> None:
    """A state that nobody knows is not ready."""
    error = state_error(state, "x")
    assert error.code.startswith("device-")
    assert state in error.why


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
