"""A buildspec's steps that were done before: no runtime is asked, and what they made is what a test says."""

from pathlib import Path
from typing import Any

import onnx
import pytest

from model_pages import steps
from onnx_samples import write
from ortrim.base.files import sha256_of
from ortrim.models.models import PreparedModel
from ortrim.models.prepare import check_model
from ortrim.parity.inputs import make_cases
from ortrim.planning import models
from ortrim.steps.preparation import Preparation

STEPS = '[[models.steps]]\nuse = "strip"\n'


def after_steps(monkeypatch: pytest.MonkeyPatch, folder: Path, model: onnx.ModelProto) -> None:
    """Let the models that have steps become this one; the step that was done is called `simplify`."""
    path = write(folder / "after.onnx", model)
    size = path.stat().st_size
    facts, _ = check_model(path, sha256=sha256_of(path), size_bytes=size, ort_version="1.21.0", where="after")

    def done(loaded: Any, originals: tuple[PreparedModel, ...], *_: object, **__: object) -> Any:
        return tuple(map(one, loaded.models, originals))

    def one(spec: Any, original: PreparedModel) -> Preparation | None:
        made = PreparedModel(name=spec.name, path=path, facts=facts)
        cases = make_cases(made, spec, folder, folder / "cases")
        return Preparation(original=original, model=made, cases=cases, report=steps()) if spec.steps else None

    monkeypatch.setattr(models, "full_runtime", lambda *_: None)
    monkeypatch.setattr(models, "preparations_of", done)
