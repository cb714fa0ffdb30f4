"""Finding an installed Xcode, with programs that answer as Apple's do; none of Apple's own is run."""

import os
import platform
from pathlib import Path

import pytest

from ortrim.binaries.apple import slice_of
from ortrim.buildspec.targets import APPLE, TARGETS
from ortrim.errors import ExitCode, ToolError
from ortrim.platforms.apple import xcode
from ortrim.platforms.apple.xcode import PROGRAMS, Xcode, find_xcode, require_sdks, sdk_folder
from refusing import refused
from xcode_layout import SAID, XCODE_VERSION, Programs, lay_out_xcode


class Mac:
    """A machine that calls itself a Mac, with an Xcode that is chosen."""

    def __init__(self, folder: Path) -> None:
        self.applications = folder / "Applications"
        self.chosen = lay_out_xcode(self.applications / "Xcode.app")
        self.programs = Programs(folder / "bin", self.chosen)
        self.environment = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}

    def find(self, version: str | None = None, **environment: str) -> Xcode:
        """Look for an Xcode."""
        return find_xcode(version, self.environment | environment)

    def refused(self, version: str | None = None, **environment: str) -> ToolError:
        """Look for an Xcode that cannot be used and return the diagnostic."""
        caught = refused(ToolError, self.find, version, **environment)
        assert caught.exit_code is ExitCode.TOOL
        assert caught.hint
        return caught


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mac:
    """Pretend to be on a Mac."""
    made = Mac(tmp_path)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(xcode, "APPLICATIONS", made.applications)
    monkeypatch.setenv("PATH", made.environment["PATH"])
    return made


def test_the_xcode_that_is_chosen_is_found(mac: Mac) -> None:
    """With its version, by what `xcode-select` says; asking for that version makes no difference."""
    assert mac.find() == mac.find(XCODE_VERSION) == Xcode(folder=mac.chosen, version=XCODE_VERSION)


@pytest.mark.parametrize("inside", ["", "Contents/Developer"])
def test_the_environment_chooses_before_xcode_select(mac: Mac, tmp_path: Path, inside: str) -> None:
    """`DEVELOPER_DIR` may name the application, as Apple's own tools allow it to, or the folder in it."""
    other = lay_out_xcode(tmp_path / "Xcode 17.app", "17.0")
    mac.programs.says("xcode-select", "asked", code=1)
    named = str(tmp_path / "Xcode 17.app" / inside) if inside else str(tmp_path / "Xcode 17.app")
    assert mac.find(DEVELOPER_DIR=named) == Xcode(folder=other, version="17.0")


@pytest.mark.parametrize("name", ["Xcode_16.1.app", "Xcode-16.1.app"])
def test_another_version_is_found_beside_it(mac: Mac, name: str) -> None:
    """GitHub's machines have several, each under its version."""
    other = lay_out_xcode(mac.applications / name, "16.1")
    assert mac.find("16.1") == Xcode(folder=other, version="16.1")
    assert mac.find().version == XCODE_VERSION


def test_a_version_without_a_point_gets_one(mac: Mac) -> None:
    """The first of a year says `Xcode 16`; plans and buildspecs write 16.0."""
    lay_out_xcode(mac.applications / "Xcode_16.app", "16")
    assert mac.find("16.0").folder == mac.applications / "Xcode_16.app" / "Contents" / "Developer"


def test_only_a_mac_has_xcode() -> None:
    """Elsewhere nothing is looked for; the way out is named."""
    caught = refused(ToolError, find_xcode)
    assert caught.code == "xcode-unsupported-host"
    assert "--executor github" in caught.hint


def test_a_mac_without_developer_tools_is_told_what_to_install(mac: Mac) -> None:
    """Whether `xcode-select` finds nothing or is not there."""
    mac.programs.says("xcode-select", SAID["none"], code=2)
    error = mac.refused()
    assert (error.code, error.why) == ("xcode-missing", SAID["none"][-300:])
    (mac.programs.folder / "xcode-select").unlink()
    assert mac.refused().code == "xcode-missing"
    mac.programs.says("xcode-select", "")
    assert mac.refused().code == "xcode-missing"


def test_the_command_line_tools_are_not_enough(mac: Mac) -> None:
    """They have no SDK for phones, and would fail in the middle of a build."""
    mac.programs.says("xcode-select", "/Library/Developer/CommandLineTools")
    error = mac.refused()
    assert error.code == "xcode-tools-only"
    assert "xcode-select -s" in error.hint


def test_a_folder_that_is_gone_is_named(mac: Mac, tmp_path: Path) -> None:
    """`xcode-select` goes on naming an application that was moved."""
    error = mac.refused(DEVELOPER_DIR=str(tmp_path / "gone"))
    assert (error.code, error.where) == ("xcode-not-a-folder", str(tmp_path / "gone"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_xcode_that_lacks_a_part_is_not_whole(mac: Mac, program: str) -> None:
    """A download that was cut short, for one; the part is named."""
    (mac.chosen / PROGRAMS[program]).unlink()
    error = mac.refused()
    assert (error.code, error.why) == ("xcode-incomplete", f"not there: {PROGRAMS[program]}")


@pytest.mark.parametrize(("words", "code"), [(SAID["licence"], 69), (SAID["licence"], 1), ("", 69)])
def test_a_licence_that_was_not_accepted_has_its_own_message(mac: Mac, words: str, code: int) -> None:
    """With the command that accepts it, which only an administrator may run."""
    mac.programs.says("xcrun", words, code=code)
    error = mac.refused()
    assert (error.code, error.hint) == ("xcode-licence", "run: sudo xcodebuild -license accept")


def test_parts_that_are_not_installed_yet_have_their_own_message(mac: Mac) -> None:
    """A new Xcode installs them when it is first started."""
    mac.programs.says("xcodebuild-first", "", code=69)
    error = mac.refused()
    assert (error.code, error.hint) == ("xcode-first-launch", "run: sudo xcodebuild -runFirstLaunch")


@pytest.mark.parametrize("text", ["", "Xcode\n", "Build version 16F6\n", "Xcode sixteen\n", "\0\xff"])
def test_an_xcode_that_does_not_tell_its_version_is_damaged(mac: Mac, text: str) -> None:
    """Whatever it says instead."""
    (mac.chosen / "version").write_text(text)
    assert mac.refused().code == "xcode-damaged"


def test_an_xcode_that_is_too_old_is_refused(mac: Mac) -> None:
    """With the oldest that will do."""
    lay_out_xcode(mac.applications / "Xcode.app", "14.3.1")
    error = mac.refused()
    assert (error.code, error.what) == ("xcode-too-old", "version 14.3.1 is too old, 15.0 or newer is needed")


def test_another_version_is_refused_with_both_ways_out(mac: Mac) -> None:
    lay_out_xcode(mac.applications / "Xcode_15.4.app", "15.3")
    error = mac.refused("15.4")
    assert error.code == "xcode-wrong-version"
    assert "15.4" in error.what
    assert "DEVELOPER_DIR" in error.hint
    assert f'apple.xcode = "{XCODE_VERSION}"' in error.hint


@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if target.system in APPLE])
def test_an_sdk_that_is_missing_is_named_with_its_command(mac: Mac, target: str) -> None:
    """Simulators and phones are downloads of their own."""
    folder = sdk_folder(slice_of(TARGETS[target]))
    found = mac.find()
    require_sdks(found, (folder,))
    (found.folder / folder).rmdir()
    caught = refused(ToolError, require_sdks, found, (folder, folder))
    assert (caught.code, caught.what) == ("xcode-sdk-missing", f"has no SDK {Path(folder).stem}")
    command = "install Xcode again" if "MacOSX" in folder else "run: xcodebuild -downloadPlatform iOS"
    assert caught.hint == command


def test_nothing_is_written(mac: Mac, tmp_path: Path) -> None:
    """Looking leaves no file behind."""
    before = sorted(os.walk(tmp_path))
    mac.find()
    assert sorted(os.walk(tmp_path)) == before
