"""Folders in which another process is at work."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Final

COMPILER: Final = """
import os, sys
from itertools import count
try:
    for number in count():
        folder = f"{sys.argv[1]}/{number % 7:x}"
        os.makedirs(f"{folder}/deep")
        for name in ("a", "deep/b"):
            with open(f"{folder}/{name}", "w") as file:
                file.write(str(number))
        os.symlink("a", f"{folder}/link")
        os.unlink(f"{folder}/link")
        os.unlink(f"{folder}/deep/b")
        os.rmdir(f"{folder}/deep")
        os.unlink(f"{folder}/a")
        os.rmdir(folder)
        if number == 10:
            print("works", flush=True)
except FileNotFoundError:
    sys.exit("somebody took it away")
"""


@contextmanager
def compiling(folder: Path) -> Iterator[Popen[bytes]]:
    """Have another process make and remove temporary folders and files in a folder, until that is taken from it."""
    folder.mkdir(parents=True)
    with Popen((sys.executable, "-c", COMPILER, str(folder)), stdout=PIPE, stderr=DEVNULL) as compiler:
        assert compiler.stdout is not None
        try:
            assert compiler.stdout.readline()
            yield compiler
        finally:
            compiler.kill()
