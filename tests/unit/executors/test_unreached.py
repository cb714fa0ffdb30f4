"""The linker script that leaves symbols out."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ortrim.executors.paths import JobPaths
from ortrim.executors.unreached import ROOM, read_script, write_script


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """The one folder that matters."""

    hooks: Path


def test_every_symbol_leads_into_the_bytes_that_there_are(tmp_path: Path) -> None:
    """However many they are: behind those bytes lies something else."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    symbols = frozenset(f"Kernel{number}" for number in range(ROOM + 40))
    write_script(paths, symbols)
    (script,) = tmp_path.iterdir()
    places = {int(line.rstrip(";").rsplit("+ ", 1)[1]) for line in script.read_text().splitlines()}
    assert places == set(range(ROOM))
    assert read_script(paths) == symbols
