"""`measure.parity`: its options."""

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
    vars(module).update(Wanted=SimpleNamespace, measure=do, parts_named=lambda words: tuple(words.split(",")))
    monkeypatch.setattr(measuring, "import_module", lambda name: {"parity.measure": module}[name])
    return asked


def test_without_options_both_parts_are_measured(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """As the tables in the documentation were."""
    assert ortrim("measure.parity").code == 0
    expected = {"parts": ("noise", "mutants"), "count": 300, "of_each_kind": 40, "output": Path("artifacts/benchmarks")}
    assert [vars(request) for request in wanted] == [expected]


def test_options_become_what_is_wanted(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """The record is printed when asked for."""
    ended = ortrim("measure.parity", "--parts", "mutants", "--mutants", "9", "--each", "2", "--json")
    assert (ended.code, ended.out.split()) == (0, ["{", '"measured":', "1", "}"])
    (request,) = wanted
    assert (request.parts, request.count, request.of_each_kind) == (("mutants",), 9, 2)


@pytest.mark.parametrize("option", ["--mutants=0", "--each=many"])
def test_numbers_of_mutants_are_numbers(ortrim: Run, wanted: list[SimpleNamespace], option: str) -> None:
    """Nothing is measured else."""
    assert ortrim("measure.parity", option).code == 2
    assert wanted == []
