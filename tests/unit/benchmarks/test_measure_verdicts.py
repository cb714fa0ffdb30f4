"""`measure.verdicts`: its options."""

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
    monkeypatch.setattr(measuring, "import_module", lambda name: {"budget_verdicts.measure": module}[name])
    return asked


def test_without_options_the_demo_is_judged_a_hundred_times(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """With all of its cases."""
    assert ortrim("measure.verdicts").code == 0
    (request,) = wanted
    assert (request.spec.name, request.number, request.case) == ("silero-vad.toml", 100, "")
    assert request.output == Path("artifacts/benchmarks")


def test_options_become_what_is_wanted(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """The record is printed when asked for."""
    words = "--spec a.toml --number 3 --case one --output o --json"
    ended = ortrim("measure.verdicts", *words.split())
    assert (ended.code, ended.out.split()) == (0, ["{", '"measured":', "1", "}"])
    assert [vars(request) for request in wanted] == [
        {"spec": Path("a.toml"), "number": 3, "case": "one", "output": Path("o")}
    ]
