"""A stand-in for Apple's `xcrun`, which is on Macs alone: it replays recorded answers and runs what is spawned."""

from collections.abc import Mapping
from pathlib import Path

from ortrim.base.tools import Program
from program_files import write_program

SPAWN = 'shift 3; exec "$@"'
"""What a simulator does with a program: it is one of this machine's."""
LINE = """
document=
previous=
for word in "$@"; do [ "$previous" = --json-output ] && document=$word; previous=$word; done
"""


class FakeXcrun:
    """`xcrun` in a folder, with what it answers to command lines that fit a shell's patterns, the first that fits."""

    def __init__(self, folder: Path, answers: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "calls"
        self.program = folder / "xcrun"
        # Without the document's path, which is another one each time.
        note = f"printf '%s\\n' \"$*\" | sed 's/ --json-output [^ ]*//' >>'{self.log}'\n"
        cases = "".join(f"  {pattern})\n{script}\n;;\n" for pattern, script in answers.items())
        write_program(self.program, f'{note}{LINE}case "$*" in\n{cases}esac')
        self.xcrun = Program(path=self.program, environment={"PATH": "/usr/bin:/bin"})

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


def says(file: Path) -> str:
    return f"cat '{file}'"


def complains(file: Path) -> str:
    """Return the script that complains as recorded, and ends with the exit code in the first line."""
    return f"tail -n +2 '{file}' >&2; exit $(head -n 1 '{file}')"


def simulators(folder: Path, listing: Path, **changed: str) -> FakeXcrun:
    """Make a Mac's simulators: listed as recorded, booted at once, running what is spawned."""
    answers = {
        '"simctl list -j"': says(listing),
        '"simctl bootstatus "*': changed.get("boot", ":"),
        '"simctl spawn "*': changed.get("spawn", SPAWN),
        '"simctl create "*': changed.get("create", "echo 0F0F0F0F-0000-4000-8000-000000000000"),
        '"simctl "*': changed.get("other", ":"),
    }
    return FakeXcrun(folder, answers)
