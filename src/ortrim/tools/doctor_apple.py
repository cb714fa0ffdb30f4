"""What this machine has for Apple's systems: Xcode, and its ways to simulators and phones."""

from collections.abc import Callable
from typing import Final

from ortrim.errors import ToolError
from ortrim.tools.findings import Finding
from ortrim.tools.xcode import find_xcode
from ortrim.tools.xcrun import find_xcrun

XCODE: Final = "Xcode"
COMPILING: Final = "ios and maccatalyst targets, and macos targets on a Mac; elsewhere: --executor github"
VERIFYING: Final = {
    "simctl": "ios-simulator targets: verification on 'simctl' simulators",
    "devicectl": "ios-arm64: verification on 'devicectl' phones",
}
"""Tools that `xcrun` finds in the Xcode that is chosen, and what each is needed for."""


def _xcode() -> Finding:
    try:
        xcode = find_xcode()
    except ToolError as error:
        return _absent(XCODE, COMPILING, error)
    return Finding(name=XCODE, found=f"{xcode.version} ({xcode.folder})", needed_for=COMPILING, required=False)


def _tool_check(tool: str, needed_for: str) -> Callable[[], Finding]:
    def check() -> Finding:
        try:
            xcrun = find_xcrun(tool)
        except ToolError as error:
            return _absent(tool, needed_for, error)
        return Finding(name=tool, found=f"by {xcrun.program}", needed_for=needed_for, required=False)

    return check


def _absent(name: str, needed_for: str, error: ToolError) -> Finding:
    problem, remedy = ": ".join(filter(None, (error.what, error.why))), error.hint.removeprefix("run: ")
    return Finding(name=name, found="", needed_for=needed_for, required=False, problem=problem, remedy=remedy)


APPLE_CHECKS: Final[tuple[tuple[str, Callable[[], Finding]], ...]] = (
    (XCODE, _xcode),
    *((tool, _tool_check(tool, needed_for)) for tool, needed_for in VERIFYING.items()),
)
"""By the name of the finding."""
