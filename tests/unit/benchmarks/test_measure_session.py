"""`measure.session`: its options."""

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
    monkeypatch.setattr(measuring, "import_module", lambda name: {"session_settings.measure": module}[name])
    return asked


def test_without_options_the_projects_buildspecs_are_measured(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """Nine times in turn."""
    assert ortrim("measure.session").code == 0
    assert [vars(request) for request in wanted] == [{"specs": (), "rounds": 9, "output": Path("artifacts/benchmarks")}]


def test_options_become_what_is_wanted(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """The spec may be given more than once, and the record is printed when asked for."""
    ended = ortrim(
        "measure.session", "--spec", "a.toml", "--spec", "b.toml", "--rounds", "3", "--output", "o", "--json"
    )
    assert (ended.code, ended.out.split()) == (0, ["{", '"measured":', "1", "}"])
    (request,) = wanted
    assert (request.specs, request.rounds) == ((Path("a.toml"), Path("b.toml")), 3)


@pytest.mark.parametrize("word", ["0", "-1", "many", "12345"])
def test_rounds_are_a_number(ortrim: Run, wanted: list[SimpleNamespace], word: str) -> None:
    """Nothing is measured else."""
    assert ortrim("measure.session", f"--rounds={word}").code == 2
    assert wanted == []
