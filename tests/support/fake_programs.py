"""Programs that write down how they were called, and answer as they were told to."""

import json
import sys
from pathlib import Path

import pytest

from program_files import write_program

PROGRAM = """\
#!{python}
import json, os, sys
from pathlib import Path
folder = Path({folder!r})
name = Path(sys.argv[0]).name
with (folder / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps([name, *sys.argv[1:]]) + "\\n")
for answer in json.loads((folder / "answers.json").read_text()):
    if answer["words"] == [name, *sys.argv[1:]][: len(answer["words"])]:
        if answer["once"] and (folder / answer["once"]).exists():
            continue
        if answer["once"]:
            (folder / answer["once"]).touch()
        sys.stdout.write(answer["stdout"])
        sys.stderr.write(answer["stderr"])
        raise SystemExit(answer["code"])
"""


class FakePrograms:
    """A folder that is all of PATH but Python's own folder; `calls` is what was called, in order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._answers: list[dict[str, object]] = []
        (folder / "bin").mkdir(parents=True)
        self._write()

    def add(self, *names: str | Path) -> None:
        """Make programs, by name or as the file that they are."""
        text = PROGRAM.format(python=sys.executable, folder=str(self.folder))
        for name in names:
            write_program(self.folder / "bin" / name, text)

    def answer(self, *words: str, stdout: str = "", stderr: str = "", code: int = 0, once: str = "") -> None:
        self._answers.append({"words": words, "stdout": stdout, "stderr": stderr, "code": code, "once": once})
        self._write()

    @property
    def calls(self) -> list[list[str]]:
        """Return the calls so far, each with the program's name first."""
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []

    def _write(self) -> None:
        (self.folder / "answers.json").write_text(json.dumps(self._answers))


def fake_programs(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> FakePrograms:
    made = FakePrograms(folder)
    made.add(*names)
    monkeypatch.setenv("PATH", str(folder / "bin"), prepend=":")
    return made
