import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.devices.ssh import COPY_FAILED, ssh_error
from ortrim.errors import ExitCode

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
    """Each cause has its reference, the machine's words and a hint."""
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
    """Whatever is printed, whatever the destination."""
    for error in (ssh_error(printed, destination), ssh_error(printed, destination, COPY_FAILED)):
        assert len(error.why.split("\n")) <= 4
        assert error.where == f"ssh:{destination}"
