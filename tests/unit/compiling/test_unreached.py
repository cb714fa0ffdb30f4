"""The linker script that leaves symbols out."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from ortrim.compiling.dead_kernels import KernelTable
from ortrim.compiling.execution import LEFT_OUT, UNREACHED, JobPaths
from ortrim.compiling.relink import DONE, ROOM, done_text, forget_unreached, read_script, write_script
from sample_plans import sample_plan


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """The one folder that matters."""

    hooks: Path


def test_every_symbol_leads_into_the_bytes_that_there_are(tmp_path: Path) -> None:
    """However many they are: behind those bytes lies something else."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    symbols = frozenset(f"Kernel{number}" for number in range(ROOM + 40))
    write_script(paths, symbols)
    script = tmp_path / UNREACHED
    places = {int(line.rstrip(";").rsplit("+ ", 1)[1]) for line in script.read_text().splitlines()}
    assert places == set(range(ROOM))
    assert read_script(paths) == symbols


def test_every_symbol_is_defined_for_links_that_would_open_an_archive_for_it(tmp_path: Path) -> None:
    """Once each, whatever characters are in it; none is left of an earlier link."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    write_script(paths, {"MlasGemm", "_Z3Getb"})
    assert (tmp_path / LEFT_OUT).read_text() == 'ORTRIM_LEFT_OUT(0, "MlasGemm")\nORTRIM_LEFT_OUT(1, "_Z3Getb")\n'
    write_script(paths, ())
    assert (tmp_path / LEFT_OUT).read_text() == ""


def test_a_function_that_is_called_leads_to_code(tmp_path: Path) -> None:
    """The other symbols lead to bytes of which nothing can be run."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    write_script(paths, {"MlasGemm", "_Z3Getb"}, KernelTable(entries={}, readers={}, called=frozenset({"Get"})))
    script = (tmp_path / UNREACHED).read_text()
    assert script == '"MlasGemm" = ortrim_unreached + 0;\n"_Z3Getb" = ortrim_unreached_call;\n'


def test_what_another_job_left_out_is_forgotten(tmp_path: Path) -> None:
    """A kept tree's script would hide from the first link what this job's own files miss; its own script stays."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    job, other = sample_plan().targets[0].job, sample_plan(profile="upstream").targets[0].job
    for left, expected in ((job, {"MlasGemm"}), (other, set())):
        write_script(paths, {"MlasGemm"})
        (tmp_path / DONE).write_text(done_text(paths, left))
        forget_unreached(paths, job)
        assert read_script(paths) == expected
        assert (tmp_path / DONE).exists() == bool(expected)


@pytest.mark.parametrize("damaged", [UNREACHED, LEFT_OUT])
@pytest.mark.parametrize("left", ["", '"MlasGemm" = ortrim_unreached + 0;\n'])
def test_a_script_that_is_not_what_was_done_is_made_anew(tmp_path: Path, left: str, damaged: str) -> None:
    """Cut short or changed, it gave another library, which was kept under the digest of the right one.

    Without the definitions, a table that fills itself would be written where the script leads: into constants.
    """
    paths, job = cast("JobPaths", Hooks(hooks=tmp_path)), sample_plan().targets[0].job
    write_script(paths, {"MlasGemm", "MlasConv"})
    (tmp_path / DONE).write_text(done_text(paths, job))
    (tmp_path / damaged).write_text(left)
    forget_unreached(paths, job)
    assert read_script(paths) == frozenset()
    assert not (tmp_path / DONE).exists()


def test_what_an_interrupted_build_left_out_is_forgotten(tmp_path: Path) -> None:
    """No job came to its end with that script."""
    paths = cast("JobPaths", Hooks(hooks=tmp_path))
    write_script(paths, {"MlasGemm"})
    forget_unreached(paths, sample_plan().targets[0].job)
    assert read_script(paths) == frozenset()
