"""Apple's command line tools, by way of `xcrun`, which finds them in the Xcode that `xcode-select` chose."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.base.command import Completed, last_lines, run
from ortrim.base.tools import Cause, diagnose
from ortrim.errors import ToolError

CHOOSE: Final = "sudo xcode-select -s /Applications/Xcode.app"
INSTALL: Final = f"install Xcode from the App Store, then run: {CHOOSE}"
LICENCE: Final = "run: sudo xcodebuild -license accept"
FIRST_LAUNCH: Final = "run: sudo xcodebuild -runFirstLaunch"
XCRUN_SECONDS: Final = 60.0
"""Xcode's first answer after an update takes its time."""
MOST_PRINTED_BYTES: Final = 64 << 20
CHILDREN: Final = "SIMCTL_CHILD_"
"""Variables of this prefix reach what runs in a simulator; none of the user's shell may favour one library."""
COMPLAINTS: Final = (
    Cause("license", "xcode-licence", "Xcode's licence was not accepted", LICENCE),
    Cause("runFirstLaunch", "xcode-not-ready", "Xcode's additional components are not installed yet", FIRST_LAUNCH),
)
"""What xcrun says, and what it means; whatever else it says means that there is no Xcode, or not enough of one."""


@dataclass(frozen=True, kw_only=True)
class Xcrun:
    """`xcrun` as found, and the whole environment that it is run with."""

    program: Path
    environment: Mapping[str, str]

    def run(self, *words: str | Path, timeout_seconds: float = XCRUN_SECONDS) -> Completed:
        """Run one of Xcode's tools to its end, whatever its exit code."""
        environment = {**self.environment, "LC_ALL": "C"}
        command = (self.program, *words)
        return run(command, environment=environment, timeout_seconds=timeout_seconds, most_bytes=MOST_PRINTED_BYTES)


def find_xcrun(tool: str, environment: Mapping[str, str] | None = None) -> Xcrun:
    """Return xcrun with an Xcode that has `simctl` or `devicectl`; `environment` replaces this process's own."""
    found = shutil.which("xcrun")
    if found is None:
        what, hint = "comes with Xcode, which runs only on a Mac", INSTALL
        raise ToolError("tool-missing", what, where="xcrun", hint=hint)
    given = dict(os.environ if environment is None else environment)
    kept = {name: value for name, value in given.items() if not name.startswith(CHILDREN)}
    xcrun = Xcrun(program=Path(found), environment=kept)
    done = xcrun.run("--find", tool)
    if done.returncode != 0:
        said = done.stderr or done.stdout
        why, what = last_lines(said, 3), f"the selected developer tools have no {tool}"
        missing = ToolError("xcode-missing", what, where="xcrun", why=why, hint=INSTALL)
        raise diagnose(said, COMPLAINTS, "xcrun", why) or missing
    return xcrun
