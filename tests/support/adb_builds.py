"""The demo built by the command line and verified on a device that adb reaches."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from ortrim.base.command import run
from ortrim.base.tools import Program

ROOT: Final = Path(__file__).parents[2]
BUILD_SECONDS: Final = 2400.0


def verified_demo(client: Program, serial: str, target: str, output: Path) -> dict[str, Any]:
    """Return what the report says of the device; what was compiled before is not compiled again."""
    device = f"adb:{serial}"
    words = (sys.executable, "-m", "invoke", "build", "--target", target, "--json", "--device", device)
    environment = {**os.environ, "ADB_SERVER_SOCKET": client.environment["ADB_SERVER_SOCKET"]}
    done = run((*words, "--output", output), cwd=ROOT, environment=environment, timeout_seconds=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    (report,) = json.loads(done.stdout)["reports"]
    (found,) = report["devices"]
    assert found["device"] == device
    return dict(found)
