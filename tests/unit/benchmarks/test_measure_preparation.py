"""`measure.preparation`: its options."""

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import measuring
import pytest

from program_runs import Run

pytestmark = pytest.mark.usefixtures("checkout")


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """Put a stand-in in the place of the benchmark and return what it is asked for."""
    asked: list[SimpleNamespace] = []

    def do(request: SimpleNamespace, _console: Any) -> dict[str, int]:
        asked.append(request)
        return {"measured": 1}

    module = ModuleType("measure")
    vars(module).update(Wanted=SimpleNamespace, measure=do)
    monkeypatch.setattr(measuring, "import_module", lambda name: {"preparation.measure": module}[name])
    return asked


def test_without_options_the_benchmarks_own_specs_are_measured(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """Nine times in turn, when the machine is at rest."""
    assert ortrim("measure.preparation").code == 0
    (request,) = wanted
    assert vars(request) == {
        "specs": (), "rounds": 9, "jobs": None, "output": Path("artifacts/benchmarks"), "rest_seconds": 180,
    }  # fmt: skip


def test_options_become_what_is_wanted(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """The spec may be given more than once, and the record is printed when asked for."""
    words = "--spec a.toml --spec b.toml --rounds 3 --jobs 2 --output out --rest 0 --json"
    assert ortrim("measure.preparation", *words.split()).document() == {"measured": 1}
    (request,) = wanted
    assert vars(request) == {
        "specs": (Path("a.toml"), Path("b.toml")), "rounds": 3, "jobs": 2, "output": Path("out"), "rest_seconds": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("option", "word"), [("rounds", "0"), ("rounds", "many"), ("jobs", "0"), ("rest", "-1"), ("rest", "1.5")]
)
def test_numbers_that_make_no_sense_are_refused(
    ortrim: Run, wanted: list[SimpleNamespace], option: str, word: str
) -> None:
    """Before anything is planned."""
    ended = ortrim("measure.preparation", f"--{option}={word}")
    assert (ended.code, wanted) == (2, [])
    assert ended.err.startswith("error: bad-option\n")


def test_the_benchmark_of_a_checkout_is_found(ortrim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real module, told to write into a folder that is a file."""
    (tmp_path / "out").write_text("mine")
    ended = ortrim("measure.preparation", "--output", str(tmp_path / "out"))
    assert (ended.code, ended.out) == (22, "")
    assert ended.err.startswith("error: path-in-the-way\n")
