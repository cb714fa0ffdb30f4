"""Container engines that are few lines of Python: what they are told is written down, commands run on this machine."""

import json
import os
import sys
from pathlib import Path

import pytest

from program_files import write_program

COMMON = """\
#!{python}
import json, os, pathlib, subprocess, sys
home = pathlib.Path({home!r})
words = sys.argv[1:]
with (home / "calls").open("a") as calls:
    calls.write(json.dumps([{name!r}, *words]) + "\\n")
answers = json.loads((home / "answers.json").read_text())
for start, (code, text) in answers.items():
    if " ".join([{name!r}, *words]).startswith(start):
        sys.stderr.write(text)
        sys.exit(code)
images = home / "images"
images.touch()
if words[:1] == ["--version"]:
    print("{name} version 28.0.1, build abc")
elif words[:1] == ["info"]:
    print("28.0.1 [name=seccomp]" if {name!r} == "docker" else "false")
elif words[:2] == ["image", "inspect"]:
    sys.exit(0 if words[-1] in images.read_text().split() else 1)
elif words[:1] == ["build"]:
    print("Step 1/1 : FROM scratch")
    (home / "built").write_text(pathlib.Path(words[-1], "Dockerfile").read_text())
    with images.open("a") as file:
        file.write(words[words.index("--tag") + 1] + "\\n")
elif words[:1] == ["run"]:
    entry = words.index("--entrypoint")
    folder = words[words.index("--workdir") + 1]
    user_python = {python!r} if words[entry + 1] == "/usr/bin/python3" else words[entry + 1]
    command = [{python!r} if word == "/usr/bin/python3" else word for word in words[entry + 3:]]
    sys.exit(subprocess.call([user_python, *command], cwd=folder))
elif words[:1] == ["ps"]:
    print((home / "leftovers").read_text() if (home / "leftovers").exists() else "", end="")
"""


class FakeEngine:
    """An engine on PATH that does what the real one would, without a container."""

    def __init__(self, home: Path, name: str) -> None:
        self.home = home
        self.name = name
        (home / "bin").mkdir(parents=True, exist_ok=True)
        self.answers: dict[str, tuple[int, str]] = {}
        self._write_answers()
        write_program(home / "bin" / name, COMMON.format(python=sys.executable, home=str(home), name=name))

    def answer(self, start: str, code: int, text: str) -> None:
        """From now on, a command that starts so ends with this exit code and these words."""
        self.answers[start] = (code, text)
        self._write_answers()

    def calls(self, word: str = "") -> list[list[str]]:
        path = self.home / "calls"
        lines = path.read_text().splitlines() if path.is_file() else []
        found: list[list[str]] = [json.loads(line)[1:] for line in lines]
        return [words for words in found if not word or words[:1] == [word]]

    def built(self) -> str:
        """Return the Dockerfile of the image that was built last."""
        return (self.home / "built").read_text()

    def _write_answers(self) -> None:
        (self.home / "answers.json").write_text(json.dumps(self.answers))


def fake_engine(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str = "docker") -> FakeEngine:
    engine = FakeEngine(folder / f"fake {name}", name)
    monkeypatch.setenv("PATH", f"{engine.home / 'bin'}{os.pathsep}{folder / 'nothing else'}")
    return engine
