"""The command of docs/guides/devices.md for Firebase Test Lab, read by gcloud's own parser."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from ortrim.devices.farms.firebase import find_gcloud

pytestmark = pytest.mark.needs("gcloud")
DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "guides" / "devices.md"
WRONG: Final = 2
"""What gcloud ends with when it does not understand its words."""


def documented() -> tuple[str, ...]:
    (found,) = re.findall(r"`gcloud (firebase test ios run [^`]+)`", DOCUMENT.read_text(encoding="utf-8"))
    return tuple(shlex.split(found))


def test_gcloud_understands_the_documented_command(tmp_path: Path) -> None:
    """It gets as far as wanting an account or a project; one word more that it does not know is refused."""
    gcloud = find_gcloud({"PATH": "/usr/bin:/bin", "CLOUDSDK_CONFIG": str(tmp_path), "HOME": str(tmp_path)})
    (tmp_path / "tests.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    words = [str(tmp_path / word) if word == "tests.zip" else word for word in documented()]
    done = gcloud.run(*words, timeout_seconds=120)
    assert done.returncode not in {0, WRONG}, done.stderr
    assert "unrecognized arguments" not in done.stderr
    assert gcloud.run(*words, "--no-such-word", timeout_seconds=120).returncode == WRONG
