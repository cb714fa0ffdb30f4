import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.ssh import COPY_FAILED, SshClient, ssh_error
from ortrim.errors import ExitCode, ToolError, VerifyError
from program_files import write_program
from refusing import refused


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="o-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def calls(tmp_path: Path, short: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an ssh of the test's own first on PATH, which notes its words and fails when it is to."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    log = tmp_path / "calls"
    write_program(program, f'for w; do echo "$w"; done >> {log}\n[ -z "$FAIL" ] || {{ echo "$FAIL" >&2; exit 255; }}')
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    return log


def words_of(calls: Path) -> list[str]:
    return calls.read_text().splitlines()


def test_one_connection_is_shared(calls: Path, short: Path) -> None:
    """All commands go by one socket, in a folder that goes when the connection is closed."""
    client = SshClient("u@board", Path("/my/config"))
    client.connect()
    client.script("echo $x", 5)
    (folder,) = short.glob("ortrim-ssh-*")
    client.close()
    words = words_of(calls)
    assert words.count(f"ControlPath={folder / 'control'}") == 3
    assert words.count("/my/config") == 3
    assert words[-4:] == ["-O", "exit", "--", "u@board"]
    assert "exec sh -c 'echo $x'" in words
    assert not folder.exists()
    client.close()


def test_a_connection_that_fails_leaves_nothing(calls: Path, short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ssh said is the diagnostic."""
    monkeypatch.setenv("FAIL", "ssh: connect to host board port 22: Connection refused")
    assert refused(VerifyError, SshClient("board").connect).code == "ssh-refused"
    assert list(short.iterdir()) == []


def test_a_long_path_for_the_socket(calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket's path may not be long; another folder for temporary files is taken then."""
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    client = SshClient("board")
    client.connect()
    client.close()
    (path,) = {word for word in words_of(calls) if word.startswith("ControlPath=")}
    assert path.startswith("ControlPath=/tmp/ortrim-ssh-")
    assert list(long.iterdir()) == []


def test_without_ssh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(ToolError, SshClient, "board")
    assert (error.code, error.where) == ("tool-missing", "ssh")
    assert "openssh-client" in error.hint


CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Offending ED25519 key in /home/u/.ssh/known_hosts:3
Host key verification failed."""
REFUSALS = [
    ("Host key verification failed.", "ssh-host-unknown"),
    (CHANGED, "ssh-host-changed"),
    ("u@board: Permission denied (publickey,password).", "ssh-denied"),
    ("Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures", "ssh-denied"),
    ("ssh: Could not resolve hostname pi: Name or service not known", "ssh-no-such-host"),
    ("ssh: connect to host 10.0.0.1 port 22: Connection refused", "ssh-refused"),
    ("ssh: connect to host 10.0.0.1 port 22: Connection timed out", "ssh-unreachable"),
    ("ssh: connect to host 10.0.0.1 port 22: No route to host", "ssh-unreachable"),
    ("Bad owner or permissions on /home/u/.ssh/config", "ssh-misconfigured"),
    ("/home/u/.ssh/config: line 1: Bad configuration option: nonsense", "ssh-misconfigured"),
    ("tar: runner: Cannot write: No space left on device", "device-full"),
    ("mkdir: cannot create directory '/x': Permission denied", "device-not-permitted"),
    ("mkdir: can't create directory '/x': Read-only file system", "device-not-permitted"),
]
"""Words of OpenSSH 9.2, GNU tar and BusyBox."""


@pytest.mark.parametrize(("printed", "reference"), REFUSALS)
def test_words_of_ssh(printed: str, reference: str) -> None:
    error = ssh_error(printed, "u@board")
    assert (error.code, error.where, error.exit_code) == (reference, "ssh:u@board", ExitCode.VERIFY)
    assert error.why
    assert error.hint
    assert "{}" not in error.hint


def test_what_nobody_knows() -> None:
    """A connection that ends without a word is lost, a copy that fails without one has failed."""
    assert ssh_error("", "b").code == "device-lost"
    assert ssh_error("client_loop: send disconnect: Broken pipe", "b").code == "device-lost"
    assert ssh_error("tar: short read", "b", COPY_FAILED).code == "copy-failed"


@given(st.text(max_size=200), st.text(max_size=30))
def test_any_output_has_a_diagnostic(printed: str, destination: str) -> None:
    for error in (ssh_error(printed, destination), ssh_error(printed, destination, COPY_FAILED)):
        assert len(error.why.split("\n")) <= 4
        assert error.where == f"ssh:{destination}"
