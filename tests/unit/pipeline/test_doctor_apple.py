"""What `doctor` says of Apple's tools: Xcode, and the ways to simulators and phones. None of Apple's own is run."""

from pathlib import Path

import pytest

from ortrim.base.tools import ToolFinding
from ortrim.planning import doctor
from ortrim.planning.doctor import examine
from ortrim.platforms.apple.xcode import Xcode


def finding(name: str) -> ToolFinding:
    """Return one finding, which keeps nobody from other builds."""
    found = next(check for check in doctor.APPLE_CHECKS if check.name == name).finding()
    assert (found.name, found.required) == (name, False)
    return found


def xcrun(folder: Path, script: str) -> None:
    (folder / "xcrun").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "xcrun").chmod(0o755)


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_xcode_is_looked_for_and_blocks_only_apple(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On no Mac it is said where to go; on one its version and folder are shown."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    absent = finding("Xcode")
    assert (absent.found, absent.satisfied) == ("", False)
    assert "--executor github" in absent.remedy
    monkeypatch.setattr(doctor, "find_xcode", lambda: Xcode(folder=tmp_path, version="16.4"))
    assert (finding("Xcode").found, finding("Xcode").satisfied) == (f"16.4 ({tmp_path})", True)


@pytest.mark.parametrize("tool", ["simctl", "devicectl"])
def test_ways_to_devices_are_absent_without_a_mac(tool: str) -> None:
    """It is said which devices cannot be reached, and what would help."""
    found = finding(tool)
    assert (found.found, found.problem) == ("", "comes with Xcode, which runs only on a Mac")
    assert f"'{tool}'" in found.needed_for
    assert found.remedy.startswith("install Xcode")


def test_each_tool_is_asked_for_by_itself(programs: Path) -> None:
    """An Xcode before 15 has simulators, and no way to phones that ortrim goes."""
    xcrun(programs, 'case "$2" in simctl) echo /X/simctl ;; *) echo "unable to find utility" >&2; exit 72 ;; esac')
    assert (finding("simctl").found, finding("simctl").satisfied) == (f"by {programs / 'xcrun'}", True)
    absent = finding("devicectl")
    assert absent.problem == "the selected developer tools have no devicectl: unable to find utility"
    assert "xcode-select" in absent.remedy


def test_a_licence_that_nobody_accepted(programs: Path) -> None:
    xcrun(programs, "echo 'You have not agreed to the Xcode license agreements.' >&2; exit 69")
    assert finding("simctl").remedy == "sudo xcodebuild -license accept"


def test_the_doctor_tells_of_all_of_them() -> None:
    names = [check.name for check in doctor.APPLE_CHECKS]
    told = {found.name: found.required for found in examine()}
    assert [told[name] for name in names] == [False] * len(names)
