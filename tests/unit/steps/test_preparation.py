"""All steps of a model: kept under what they depend on, and nothing left behind by those that fail."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onnx_samples import write
from ortrim.base.files import sha256_of
from ortrim.buildspec.buildspec import CaseSpec, InputSpec, ModelSpec
from ortrim.buildspec.step_specs import Batch, FixDimensions, Merge, Opset, Rename, Step, Strip
from ortrim.buildspec.tolerances import Tolerance
from ortrim.errors import ModelError, SpecError
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.models import PreparedModel, TensorInfo
from ortrim.models.prepare import check_model
from ortrim.parity.inputs import make_cases
from ortrim.steps import preparation
from ortrim.steps.parity import State, StepStage
from ortrim.steps.preparation import Ingredients, options_text, prepare_by_steps, step_name, with_default_case
from ortrim.steps.step import Stepped
from refusing import refused
from stepped_models import layered

STRIP = Strip(use="strip")
NOWHERE = Path("/nonexistent")
Given = Callable[..., Ingredients]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Return what a preparation of the layered model starts from."""

    def made(*steps: Step, **keys: Any) -> Ingredients:
        path = write(tmp_path / "given.onnx", layered())
        size = path.stat().st_size
        facts, _ = check_model(path, sha256=sha256_of(path), size_bytes=size, ort_version="1.21.0", where="m")
        spec = replace(ModelSpec(name="m", path=path, cases=(CaseSpec(name="one"),)), steps=steps, **keys)
        original = PreparedModel(name="m", path=path, facts=facts)
        return Ingredients(
            original=original,
            cases=make_cases(original, spec, tmp_path, tmp_path / "cases"),
            spec=spec,
            base=tmp_path,
            runtime=FullRuntime(version="1.21.0", words=(), environment={}, packages=NOWHERE, library=NOWHERE),
            where="x.toml: models[0]",
        )

    return made


def kept(given: Ingredients, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that a preparation would be kept in, without making it."""
    folders: list[Path] = []
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "cached_folder", lambda folder, _: folders.append(folder))
        patch.setattr(preparation, "_read", lambda *_: None)
        prepare_by_steps(given, root)
    return folders[0]


def test_each_thing_that_matters_makes_another_folder(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps, their order, tolerances, cases and the content of files that steps name are all part of the digest."""
    other = tmp_path / "other.onnx"
    other.write_bytes(b"one")
    merge = Merge(use="merge", path=Path("other.onnx"), connect={"y": "x"})
    opset = Opset(use="opset", version=17)
    makers = (
        given(STRIP),
        given(STRIP, opset),
        given(opset, STRIP),
        given(replace(STRIP, shapes=True)),
        given(STRIP, tolerances={"float32": Tolerance(absolute=1.0)}),
        given(STRIP, cases=(CaseSpec(name="two", seed=2),)),
        given(merge),
    )
    folders = {kept(each, tmp_path, monkeypatch) for each in makers}
    other.write_bytes(b"two")
    folders.add(kept(given(merge), tmp_path, monkeypatch))
    assert len(folders) == len(makers) + 1
    assert kept(given(STRIP), tmp_path, monkeypatch) in folders


def test_a_step_that_fails_leaves_nothing_behind(given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is not made, and what was done before is gone."""

    def failing(*_: object) -> tuple[State, Stepped]:
        raise ModelError("step-failed", "it cannot be done")

    monkeypatch.setattr(preparation, "first_state", lambda *_: None)
    monkeypatch.setattr(preparation, "take", failing)
    root = tmp_path / "steps"
    with pytest.raises(ModelError):
        prepare_by_steps(given(STRIP), root)
    assert [path.name for path in root.iterdir() if path.suffix != ".lock"] == []


def test_steps_are_done_in_order(given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its number, its choices and the buildspec's folder; progress is told before."""
    seen: list[object] = []

    def taken(_: State, stage: StepStage) -> tuple[None, None]:
        seen.append((stage.number, stage.choices, stage.base))
        return None, None

    monkeypatch.setattr(preparation, "first_state", lambda *_: None)
    monkeypatch.setattr(preparation, "take", taken)
    monkeypatch.setattr(preparation, "_keep", lambda *_: None)
    monkeypatch.setattr(preparation, "_read", lambda *_: None)
    opset = Opset(use="opset", version=17)
    prepare_by_steps(given(STRIP, opset), tmp_path / "steps", lambda number, _: seen.append(number))
    assert seen == [1, (1, STRIP, tmp_path), 2, (2, opset, tmp_path)]


def test_a_file_that_is_gone_is_a_diagnostic(given: Given, tmp_path: Path) -> None:
    """It was there when the buildspec was read."""
    merge = Merge(use="merge", path=Path("absent.onnx"), connect={"y": "x"})
    assert refused(SpecError, prepare_by_steps, given(merge), tmp_path / "steps").code == "step-file-missing"
    assert not (tmp_path / "steps").exists()


def test_a_model_without_cases_gets_one_of_the_fixed_sizes(given: Given) -> None:
    """By the dimension's name, its place, or as the batch; cases of the buildspec's own stay."""
    original = given().original
    fix = FixDimensions(use="fix-dimensions", sizes={"batch": 4})
    bare = ModelSpec(name="m", steps=(fix,))
    (case,) = with_default_case(bare, original).cases
    assert case == CaseSpec(name="default", inputs={"x": InputSpec(shape=(4, 3))})
    by_place = replace(bare, steps=(FixDimensions(use="fix-dimensions", sizes={"x:0": 5}),))
    assert with_default_case(by_place, original).cases[0].inputs["x"].shape == (5, 3)
    batch = replace(bare, steps=(Batch(use="batch", size=6),))
    assert with_default_case(batch, original).cases[0].inputs["x"].shape == (6, 3)
    own = replace(bare, cases=(CaseSpec(name="own"),))
    assert with_default_case(own, original) == own
    assert with_default_case(replace(bare, steps=(STRIP,)), original).cases == ()
    unknown = replace(
        original, facts=replace(original.facts, inputs=(TensorInfo(name="x", element_type="float32", shape=None),))
    )
    assert with_default_case(bare, unknown).cases == ()


def test_steps_are_named_as_they_are_written() -> None:
    """Only the keys that are given otherwise than by default are named."""
    assert step_name(2, STRIP) == "step 2 (strip)"
    assert options_text(STRIP) == ""
    assert options_text(replace(STRIP, optional=True, keep=("a",))) == 'optional = true, keep = ["a"]'
    assert options_text(Rename(use="rename", inputs={"a": "b"})) == 'inputs = {"a": "b"}'
