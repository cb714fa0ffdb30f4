"""A toolchain's wrappers, run by a real shell in front of a compiler that writes down what it is called with."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from ortrim.base.command import Completed, run

RECORD = """\
import json, os, sys
words = sys.argv[1:]
with open(os.environ["RECORD"], "a") as record:
    record.write(json.dumps(words) + "\\n")
"""
PROGRAMS = ("ORTRIM_COMPILER_C", "ORTRIM_COMPILER_CXX", "ORTRIM_AR", "ORTRIM_RANLIB")


class WrapperBench:
    """Folders with blanks in their names; `compiler` is Python that runs once its `words` are written down."""

    def __init__(self, folder: Path, compiler: str = "", wrappers: Iterable[tuple[str, str]] = ()) -> None:
        self.folder, self.build = folder, folder / "the build"
        self.build.mkdir()
        program = self.program("a compiler", f"#!{sys.executable} -S\n{RECORD}{compiler}")
        for name, text in wrappers:
            self.program(name, text)
        self.environment = dict.fromkeys(PROGRAMS, str(program)) | {
            "PATH": "/usr/bin:/bin",
            "ORTRIM_SOURCES": "/the sources",
            "ORTRIM_BUILD": str(self.build),
            "ORTRIM_LINK_MAP": str(folder / "link map"),
            "RECORD": str(folder / "record"),
        }
        self.maps = [f"-ffile-prefix-map={self.environment[name]}=." for name in ("ORTRIM_SOURCES", "ORTRIM_BUILD")]

    def program(self, name: str, text: str) -> Path:
        path = self.folder / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755)
        return path

    def call(self, wrapper: str, *arguments: str, where: str = "the build", **environment: str) -> Completed:
        (self.folder / where).mkdir(parents=True, exist_ok=True)
        command: list[str | Path] = [self.folder / wrapper, *arguments]
        return run(command, cwd=self.folder / where, environment=self.environment | environment)

    def calls(self) -> list[list[str]]:
        record = Path(self.environment["RECORD"])
        lines = record.read_text().splitlines() if record.is_file() else []
        record.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    def given(self, text: str, *arguments: str) -> list[list[str]]:
        self.program("wrapper", text)
        done = self.call("wrapper", *arguments)
        assert (done.returncode, done.stderr) == (0, "")
        return self.calls()
