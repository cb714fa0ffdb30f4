"""`measure.memory`: its options."""

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
    monkeypatch.setattr(measuring, "import_module", lambda name: {"activation_memory.measure": module}[name])
    return asked


def test_without_options_all_models_are_measured(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """And the record goes to the folder of all benchmarks."""
    assert ortrim("measure.memory").code == 0
    assert [vars(request) for request in wanted] == [{"models": (), "output": Path("artifacts/benchmarks")}]


def test_models_are_named_with_commas(ortrim: Run, wanted: list[SimpleNamespace]) -> None:
    """The record is printed when asked for."""
    ended = ortrim("measure.memory", "--models", "vgg19,captcha", "--output", "o", "--json")
    assert (ended.code, ended.out.split()) == (0, ["{", '"measured":', "1", "}"])
    assert wanted[0].models == ("vgg19", "captcha")
