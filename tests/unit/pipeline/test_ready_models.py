"""Models as they are judged: after their steps, unless they are wanted as given."""

import io
from pathlib import Path

import pytest
from onnx import helper

from fake_sources import private_cache
from onnx_samples import model_of, relu, write
from ortrim.base.console import Console
from ortrim.base.files import sha256_of
from ortrim.buildspec.buildspec import LoadedSpec
from ortrim.planning import models as module
from ortrim.planning.models import cases_of, ready_models
from ortrim.planning.request import Request, load
from prepared_by_steps import STEPS, after_steps

CONSOLE = Console(stdout=io.StringIO(), stderr=io.StringIO(), environment={})


@pytest.fixture(name="loaded")
def fixture_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedSpec:
    """Load a buildspec whose first model has a step, and whose second has none."""
    private_cache(tmp_path, monkeypatch)
    write(tmp_path / "m.onnx", relu())
    models = (f'[[models]]\nname = "{name}"\npath = "m.onnx"\n' for name in ("one", "two"))
    (tmp_path / "two.toml").write_text(STEPS.join(models) + '[[targets]]\nid = "linux-x64"\n')
    return load(Request(spec=tmp_path / "two.toml"))


def test_a_model_with_steps_is_the_one_after_them(
    loaded: LoadedSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_steps(monkeypatch, tmp_path, model_of([helper.make_node("Abs", ["x"], ["y"])]))
    first, second = ready_models(loaded, CONSOLE)
    assert (first.model.path, first.steps) == (tmp_path / "after.onnx", ("simplify",))
    assert (second.model.facts.sha256, second.steps) == (sha256_of(tmp_path / "m.onnx"), ())
    assert first.preparation
    assert cases_of(first, 0, loaded) == first.preparation.cases
    assert [case.name for case in cases_of(second, 1, loaded)] == ["default"]


def test_no_runtime_is_asked_for_models_as_given(loaded: LoadedSpec, monkeypatch: pytest.MonkeyPatch) -> None:

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "full_runtime", refuse)
    assert [each.steps for each in ready_models(loaded, CONSOLE, given=True)] == [(), ()]
    with pytest.raises(AssertionError):
        ready_models(loaded, CONSOLE)
