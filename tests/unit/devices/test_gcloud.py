"""gcloud, as other programs stand in for it; the real one is in `tests/integration/test_firebase.py`."""

import sys
from pathlib import Path

import pytest

from ortrim.devices.farms.firebase import SETTINGS, Gcloud, find_gcloud, without_secrets
from ortrim.errors import ExitCode, ToolError
from program_files import write_program
from refusing import refused

TALKER = """\
import signal, sys, time
def end(*_):
    sys.stderr.write("\\nTest matrix has been cancelled.\\n")
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
for _ in range(2000):
    print("Test is Running", file=sys.stderr)
time.sleep(60)
"""
"""What gcloud does on SIGTERM, by its `ctrl_c_handler.py`, and says while it works."""
SECRETS = (
    "ya29.a0AfH6SMB-x_y.z/1+2~3",
    "1//0gabcdefghijk-LMN",
    "eyJhbGciOi.eyJpc3MiOi.c2lnbmF0-dXJl",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQ\nIBADAN\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQ, and nothing after it",
)


def program(folder: Path, text: str) -> Path:
    return write_program(folder / "gcloud", text)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_gcloud_that_is_absent(folder: Path) -> None:
    """Where to get it, since no distribution has it."""
    error = refused(ToolError, find_gcloud)
    assert (error.code, error.exit_code) == ("tool-missing", ExitCode.TOOL)
    assert "cloud.google.com/sdk" in error.hint


@pytest.mark.parametrize(
    ("printed", "reference"),
    [("echo 'Google Cloud SDK 401.0.0'", "tool-too-old"), ("echo no; exit 1", "tool-broken")],
)
def test_gcloud_that_will_not_do(folder: Path, printed: str, reference: str) -> None:
    program(folder, printed)
    error = refused(ToolError, find_gcloud)
    assert error.code == reference
    assert error.hint


def test_gcloud_is_found(folder: Path) -> None:
    """With the user's settings, but for those that would print requests: who looked for a fault may have left them."""
    said = 'echo "$CLOUDSDK_CORE_LOG_HTTP $CLOUDSDK_CORE_PROJECT"'
    path = program(folder, f"echo 'Google Cloud SDK 528.0.0'; echo 'bq 2.1.18'; {said}")
    gcloud = find_gcloud({"CLOUDSDK_CORE_LOG_HTTP": "true", "CLOUDSDK_CORE_PROJECT": "mine"})
    assert (gcloud.path, gcloud.version) == (path, "528.0.0")
    assert gcloud.run(timeout_seconds=10).stdout.endswith("\nfalse mine\n")
    assert find_gcloud().environment["PATH"] == str(folder)


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_removed(secret: str) -> None:
    text = without_secrets(f"before {secret}")
    assert text == "before (removed)"
    assert without_secrets("Authorization: Bearer abc.def") == "Authorization: Bearer (removed)"


def test_secrets_are_removed_from_what_gcloud_prints(folder: Path) -> None:
    """From both streams, whether it is watched or not."""
    path = program(folder, f"echo 'out {SECRETS[0]}'; echo 'err {SECRETS[0]}' >&2")
    gcloud = Gcloud(path=path, environment={})
    heard: list[str] = []
    watched = gcloud.watch("run", on_output=heard.append, check=lambda: None)
    run = gcloud.run("run", timeout_seconds=10)
    assert (run.stdout, run.stderr) == (watched.stdout, watched.stderr) == ("out (removed)\n", "err (removed)\n")
    assert heard == ["err (removed)"]


def test_a_test_is_cancelled_while_gcloud_speaks(tmp_path: Path) -> None:
    """Its handler writes to the very stream that the signal interrupted, which Python's buffered ones refuse."""
    (tmp_path / "talker.py").write_text(TALKER)
    gcloud = Gcloud(path=program(tmp_path, f"exec '{sys.executable}' '{tmp_path / 'talker.py'}'"), environment=SETTINGS)
    heard: list[str] = []

    def on_output(line: str) -> None:
        heard.append(line)
        if len(heard) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gcloud.watch("run", on_output=on_output, check=lambda: None)
    assert heard[-1] == "Test matrix has been cancelled."
