import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ortrim.devices.ssh import SshClient
from ortrim.errors import ToolError, VerifyError
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
    program.write_text(
        f'#!/bin/sh\nfor w; do echo "$w"; done >> {log}\n[ -z "$FAIL" ] || {{ echo "$FAIL" >&2; exit 255; }}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    return log


def words_of(calls: Path) -> list[str]:
    return calls.read_text().splitlines()


def test_host_keys_are_never_taken_on_trust(calls: Path) -> None:
    """Nothing is asked, and nothing in the user's check of host keys is changed."""
    client = SshClient("board")
    client.connect()
    client.script("true", 5)
    client.close()
    words = words_of(calls)
    assert "BatchMode=yes" in words
    assert not any("StrictHostKeyChecking" in word or "KnownHosts" in word for word in words)


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
    """How to install it is said."""
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(ToolError, SshClient, "board")
    assert (error.code, error.where) == ("tool-missing", "ssh")
    assert "openssh-client" in error.hint
