"""An interrupt at any moment leaves what was there before, or what was to be there, and nothing else."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

import ortrim
from ortrim.base.cache import publish_folder
from ortrim.base.files import write_atomically
from ortrim.base.http import arriving
from ortrim.package.package import new_archive

CONTENT: Final = b"content"
MOST_LINES: Final = 300
OWN: Final = str(Path(ortrim.__file__).parent)
"""Where ortrim's own lines are; a checkout of that name has other people's, too."""


def download(destination: Path) -> None:
    with arriving(destination) as file:
        file.write(CONTENT)


def archive(destination: Path) -> None:
    with new_archive(destination) as file:
        file.write(CONTENT)


def folder(destination: Path) -> None:
    def fill(made: Path) -> None:
        (made / "file").write_bytes(CONTENT)

    publish_folder(destination, fill)


WAYS: Final[dict[str, Callable[[Path], None]]] = {
    "a file": lambda destination: write_atomically(destination, CONTENT),
    "a download": download,
    "an archive": archive,
    "a folder": folder,
}


def interrupted_at(number: int, work: Callable[[], None]) -> bool:
    """Interrupt work before the given line of ortrim's that it runs; return whether there was one."""
    left = number

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.startswith(OWN):
            return None
        left -= event == "line"
        if left == 0 and event == "line":
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_half_done_is_left(tmp_path: Path, way: str) -> None:
    for number in range(1, MOST_LINES):
        place = tmp_path / str(number)
        place.mkdir()
        destination = place / "made"
        interrupted = interrupted_at(number, partial(WAYS[way], destination))
        left = {path.name for path in place.iterdir() if not path.name.endswith(".lock")}
        assert left <= {"made"}, f"line {number}"
        if not interrupted:
            assert left == {"made"}
            return
    pytest.fail("it ran on and on")
