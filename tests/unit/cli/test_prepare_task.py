"""`prepare` as a shell runs it."""

from pathlib import Path
from typing import Any

import pytest

from ortrim.planning import models
from program_runs import Run

MODEL = '[[models]]\nname = "{name}"\npath = "m.onnx"\n'
STEP = '[[models.steps]]\nuse = "strip"\n'


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a buildspec of one model with steps and one without; nothing is prepared, only seen."""
    (tmp_path / "m.onnx").write_bytes(b"not opened")
    monkeypatch.setattr(models, "prepared_models", lambda loaded, _: tuple(loaded.models))
    monkeypatch.setattr(models, "full_runtime", lambda *_: None)
    file = tmp_path / "two.toml"
    file.write_text(MODEL.format(name="one") + STEP + MODEL.format(name="two"))
    return file


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the models whose steps are asked for."""
    names: list[str] = []

    def preparations(loaded: Any, *_: Any) -> tuple[None, ...]:
        names.extend(model.name for model in loaded.models)
        return (None,)

    monkeypatch.setattr(models, "preparations_of", preparations)
    return names


@pytest.mark.parametrize("words", [(), ("--only", "one")])
def test_models_with_steps_are_prepared(ortrim: Run, spec: Path, chosen: list[str], words: tuple[str, ...]) -> None:
    """Those without any are left out, and one can be named."""
    assert ortrim("prepare", "--spec", str(spec), *words).code == 0
    assert chosen == ["one"]


def test_json_is_one_document(ortrim: Run, spec: Path, chosen: list[str]) -> None:
    assert ortrim("prepare", "--spec", str(spec), "--json").document() == []
    assert chosen == ["one"]


@pytest.mark.parametrize(
    ("words", "reference"), [(("--only", "three"), "no-such-model"), (("--only", "two"), "no-steps")]
)
def test_a_model_that_cannot_be_prepared_is_a_usage_error(
    ortrim: Run, spec: Path, chosen: list[str], words: tuple[str, ...], reference: str
) -> None:
    ended = ortrim("prepare", "--spec", str(spec), *words)
    assert (ended.code, chosen) == (2, [])
    assert reference in ended.err
