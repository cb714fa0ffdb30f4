"""What compilers leave in a tree: gone when a build begins and when it ends, however it ends."""

from pathlib import Path

import pytest

from ortrim.errors import BuildError
from workshop import GOOD, Workshop

SCRATCH = """
scratch = pathlib.Path(os.environ["ZIG_LOCAL_CACHE_DIR"])
(scratch / "tmp" / "0123").mkdir(parents=True)
(scratch / "o").mkdir()
(scratch / "o" / "precompiled.o").write_bytes(bytes(1000))
(configured / "precompiled-mlas-1.pch").write_text("whole")
(configured / "precompiled-mlas-2.pch.4711").write_text("half")
"""


def left(workshop: Workshop) -> list[Path]:
    """Return what lies in the tree that no later build reads."""
    out = workshop.tree / "out"
    return sorted([*out.glob("zig"), *out.glob("MinSizeRel/precompiled-*.pch.*")])


def test_a_build_leaves_no_scratch(workshop: Workshop) -> None:
    """The precompiled header itself stays, for the next model."""
    workshop.write(SCRATCH + GOOD)
    workshop.executor().run(workshop.job)
    assert left(workshop) == []
    assert (workshop.tree / "out" / "MinSizeRel" / "precompiled-mlas-1.pch").read_text() == "whole"


@pytest.mark.parametrize("end", ["sys.exit(1)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_nor_does_a_build_that_fails(workshop: Workshop, end: str) -> None:
    """A compiler that was killed half-way through the header leaves it under the name of its process."""
    workshop.write(SCRATCH + end)
    with pytest.raises(BuildError):
        workshop.executor().run(workshop.job)
    assert left(workshop) == []


def test_a_killed_ortrims_leftovers_go_before_the_next_build_compiles(workshop: Workshop) -> None:
    """They may be what filled the disk."""
    configured = workshop.tree / "out" / "MinSizeRel"
    configured.mkdir(parents=True)
    (configured / "precompiled-mlas-2.pch.4711").write_text("half")
    (workshop.tree / "out" / "zig" / "o").mkdir(parents=True)
    seen = "(build / 'seen').write_text(repr([*configured.glob('*.pch.*'), (build / 'zig').exists()]))"
    workshop.write(GOOD, update=seen)
    workshop.executor().run(workshop.job)
    assert (workshop.tree / "out" / "seen").read_text() == "[False]"
    assert left(workshop) == []


def test_what_cannot_be_removed_does_not_spoil_the_build(workshop: Workshop) -> None:
    """A folder of the header's name, which no wrapper makes."""
    workshop.write(SCRATCH + GOOD)
    (workshop.tree / "out" / "MinSizeRel" / "precompiled-mlas-1.pch.1").mkdir(parents=True)
    assert workshop.executor().run(workshop.job).library.is_file()
