"""Blocks of memory that stay in the library's room: threads by turns, what one deletes for another, and no overlap."""

from pathlib import Path

import pytest

from cxx_compilers import compile_with, zig
from ortrim.base.command import run
from ortrim.base.files import shipped_folder

pytestmark = pytest.mark.network


def test_no_block_is_had_by_two_and_an_inference_finds_those_of_the_last(tmp_path: Path) -> None:
    source = Path(__file__).parent / "data" / "kept_blocks.cc"
    words = (
        "-std=c++20",
        "-O2",
        "-fno-exceptions",
        "-fno-rtti",
        "-pthread",
        str(shipped_folder("cmake") / source.name),
    )
    program = compile_with(zig, "kept_blocks.h", source, tmp_path / "program", *words)
    done = run((program,))
    assert (done.returncode, done.stdout) == (0, "as written\n"), done.stderr
