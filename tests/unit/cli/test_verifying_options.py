"""Options of the tasks that verify."""

from pathlib import Path

import pytest

from ortrim.base import cache
from ortrim.base.cache import cached_folder
from ortrim.cli.boundary import boundary
from ortrim.cli.options import Verifying, request_from
from ortrim.errors import ExitCode, UsageError
from program_runs import Run
from refusing import refused


@pytest.mark.parametrize(("text", "cores"), [(None, ()), ("4-7", (4, 5, 6, 7)), ("0,4-7", (0, 4, 5, 6, 7))])
def test_cores_become_part_of_the_request(text: str | None, cores: tuple[int, ...]) -> None:
    """Without the option a device decides itself."""
    assert request_from(verifying=Verifying(cores=text)).cores == cores


@pytest.mark.parametrize("text", ["", "f0", "7-4", "4,", "9999", "all"])
def test_cores_that_are_none(text: str) -> None:
    error = refused(UsageError, request_from, verifying=Verifying(cores=text))
    assert (error.code, error.where) == ("bad-option", "--cores")
    assert "4-7" in error.hint


@pytest.mark.parametrize("task", ["build", "verify"])
def test_both_tasks_take_cores(ortrim: Run, task: str) -> None:
    ended = ortrim(task, "--cores", "f0")
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert ended.err.startswith("error: bad-option\n")


@pytest.mark.parametrize(("words", "verify"), [((), False), (("--verify-cache",), True)])
def test_the_cache_is_hashed_when_asked(
    ortrim: Run, monkeypatch: pytest.MonkeyPatch, *, words: tuple[str, ...], verify: bool
) -> None:
    """Without the option, and not on CI, large entries are looked at by `stat`."""
    asked: list[bool] = []

    monkeypatch.setenv("CI", "")
    monkeypatch.setattr(
        "ortrim.pipeline.building.build", lambda *_: tuple(map(asked.append, [cache.is_verifying()]))[1:]
    )
    assert ortrim("build", *words).code == ExitCode.OK
    assert asked == [verify]


def test_damage_in_the_cache_is_a_warning(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """On the terminal of whatever task finds it."""
    for content in ("old", "new"):
        with boundary():
            cached_folder(tmp_path / "entry", lambda folder: (folder / "file").touch())
        (tmp_path / "entry" / "file").write_text(content)
    assert "warning: damaged-cache: " in capfd.readouterr().out
