"""A folder that is laid out like an Xcode, and programs that answer for it as Apple's do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ortrim.platforms.apple.xcode import PROGRAMS, SDKS
from program_files import write_program

XCODE_VERSION: Final = "16.4"
VERSION_SAID: Final = "Xcode {version}\nBuild version 16F6"
SAID: Final[Mapping[str, str]] = {
    "tools-only": "xcode-select: error: tool 'xcodebuild' requires Xcode, but active developer directory "
    "'/Library/Developer/CommandLineTools' is a command line tools instance",
    "none": "xcode-select: error: unable to get active developer directory, use `sudo xcode-select --switch "
    "path/to/Xcode.app` to set one (or see `man xcode-select`)",
    "licence": "You have not agreed to the Xcode license agreements. Please run 'sudo xcodebuild -license' from within "
    "a Terminal window to review and agree to the Xcode and Apple SDKs license.",
}
"""What Apple's programs say, as users of them report it."""


def lay_out_xcode(app: Path, version: str = XCODE_VERSION) -> Path:
    folder = app / "Contents" / "Developer"
    for program in PROGRAMS.values():
        (folder / program).parent.mkdir(parents=True, exist_ok=True)
        (folder / program).touch()
    for sdk in SDKS.values():
        (folder / "Platforms" / f"{sdk}.platform" / "Developer" / "SDKs" / f"{sdk}.sdk").mkdir(
            parents=True, exist_ok=True
        )
    (folder / "version").write_text(VERSION_SAID.format(version=version) + "\n")
    return folder


class Programs:
    """Apple's programs, which say what their files in `folder` hold, and end with the code that stands there."""

    def __init__(self, folder: Path, chosen: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.says("xcode-select", str(chosen))
        self.says("xcrun", "Apple clang version 17.0.0 (clang-1700.0.13.5)")
        self.says("xcodebuild-first", "")
        answers = 'case "$1" in -version) cat "$DEVELOPER_DIR/version" ;; *) exec xcodebuild-first ;; esac'
        write_program(folder / "xcodebuild", answers)

    def says(self, name: str, words: str, *, code: int = 0) -> None:
        """Let a program print words, on its error stream when it fails."""
        (self.folder / f"{name}.txt").write_text(words + "\n")
        stream = " >&2" if code else ""
        write_program(self.folder / name, f'cat "{self.folder}/{name}.txt"{stream}; exit {code}')
