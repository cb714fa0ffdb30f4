"""Finding Xcode's tools, with a stand-in for `xcrun` that complains in Apple's words."""

import os
from pathlib import Path

import pytest

from ortrim.devices.xcrun import find_xcrun
from ortrim.errors import ExitCode, ToolError
from refusing import refused


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    (folder / "xcrun").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "xcrun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_a_tool_is_found_and_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In C's locale, with the user's own Xcode, and without variables that would reach what runs in a simulator."""
    installed(tmp_path, monkeypatch, 'echo "$@"; echo "$LC_ALL $DEVELOPER_DIR $SIMCTL_CHILD_X" >&2')
    monkeypatch.setenv("SIMCTL_CHILD_X", "1")
    xcrun = find_xcrun("simctl", {**os.environ, "DEVELOPER_DIR": "/X"})
    done = xcrun.run("simctl", "list")
    assert (done.stdout, done.stderr) == ("simctl list\n", "C /X \n")


@pytest.mark.parametrize(
    ("said", "reference", "remedy"),
    [
        (
            'xcrun: error: unable to find utility "simctl", not a developer tool or in PATH',
            "xcode-missing",
            "xcode-select",
        ),
        (
            "xcrun: error: invalid active developer path (/Library/Developer/CommandLineTools)",
            "xcode-missing",
            "App Store",
        ),
        ("You have not agreed to the Xcode license agreements.", "xcode-licence", "license accept"),
        ("Run 'xcodebuild -runFirstLaunch' to install them.", "xcode-not-ready", "-runFirstLaunch"),
        ("", "xcode-missing", "xcode-select"),
    ],
)
def test_an_xcode_that_is_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reference: str, remedy: str
) -> None:
    """Each cause has its own command."""
    installed(tmp_path, monkeypatch, f'echo "{said}" >&2; exit 72'.replace('"simctl"', "'simctl'"))
    error = refused(ToolError, find_xcrun, "simctl")
    assert (error.code, error.exit_code) == (reference, ExitCode.TOOL)
    assert remedy in error.hint
    assert error.where == "xcrun"


def test_a_machine_without_xcrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is most likely no Mac."""
    monkeypatch.setenv("PATH", str(tmp_path))
    error = refused(ToolError, find_xcrun, "devicectl")
    assert (error.code, error.where) == ("tool-missing", "xcrun")
    assert "Mac" in error.what
