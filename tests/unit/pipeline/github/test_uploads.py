"""A buildspec and what it names, as they lie to each other on another machine."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fake_sources import private_cache
from onnx_samples import relu
from onnx_samples import write as write_model
from ortrim.base.console import Console
from ortrim.errors import ExitCode, PlanError
from ortrim.github import uploaded_models
from ortrim.github.uploaded_models import Bundle, bundle
from ortrim.pipeline.request import prepared_models
from ortrim.platforms import target_problems
from ortrim.spec.buildspec import LoadedSpec
from ortrim.spec.load import load_spec

SPEC = '[[models]]\nname = "tiny"\npath = "{}"\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a cache of one's own."""
    private_cache(tmp_path, monkeypatch)


def write(path: Path) -> Path:
    """Write a small model."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, relu())


def loaded(folder: Path, text: str) -> LoadedSpec:
    """Write a buildspec and load it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "app.toml").write_text(text)
    return load_spec(folder / "app.toml", target_problems)


def bundled(spec: LoadedSpec) -> Bundle:
    """Return what would be uploaded."""
    return bundle(spec, prepared_models(spec, Console(quiet=True)))


def test_files_keep_their_places_to_each_other(tmp_path: Path) -> None:
    """What is above the folder that holds them all is nobody's business."""
    for name in ("private/models", "private/data/set_0"):
        (tmp_path / name).mkdir(parents=True)
    write(tmp_path / "private" / "models" / "tiny.onnx")
    for name in ("input_0.pb", "output_0.pb"):
        (tmp_path / "private" / "data" / "set_0" / name).write_bytes(b"x")
    case = '[[models.cases]]\nname = "first"\ndata = "../data/set_0"\n'
    spec = loaded(tmp_path / "private" / "app", SPEC.format("../models/tiny.onnx") + case)
    found = bundled(spec)
    assert str(found.spec) == "app/app.toml"
    assert [file.path for file in found.files] == [
        "app/app.toml", "data/set_0/input_0.pb", "data/set_0/output_0.pb", "models/tiny.onnx"
    ]  # fmt: skip
    assert [file.file.is_file() for file in found.files] == [True] * 4


def test_a_single_folder_has_no_folders_in_it(tmp_path: Path) -> None:
    """The buildspec is at the top."""
    write(tmp_path / "x" / "tiny.onnx")
    found = bundled(loaded(tmp_path / "x", SPEC.format("tiny.onnx")))
    assert (str(found.spec), len(found.files)) == ("app.toml", 2)


def test_a_relative_buildspec_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the folder in which the program runs."""
    write(tmp_path / "tiny.onnx")
    loaded(tmp_path / "specs", SPEC.format("../tiny.onnx"))
    monkeypatch.chdir(tmp_path)
    found = bundled(load_spec(Path("specs/app.toml"), target_problems))
    assert (str(found.spec), [file.path for file in found.files]) == ("specs/app.toml", ["specs/app.toml", "tiny.onnx"])


def refused(spec: LoadedSpec) -> PlanError:
    """Bundle what cannot be and return the diagnostic."""
    with pytest.raises(PlanError) as caught:
        bundled(spec)
    assert caught.value.exit_code == ExitCode.PLAN
    assert caught.value.hint
    return caught.value


def test_a_path_of_this_machine_is_refused(tmp_path: Path) -> None:
    """It leads nowhere there."""
    model = write(tmp_path / "tiny.onnx")
    assert refused(loaded(tmp_path / "x", SPEC.format(model))).reference == "plan-cannot-travel"


def test_sources_of_this_machine_are_not_uploaded(tmp_path: Path) -> None:
    """They would be compiled by a machine that trusts nobody."""
    write(tmp_path / "x" / "tiny.onnx")
    spec = loaded(tmp_path / "x", SPEC.format("tiny.onnx"))
    runtime = replace(spec.spec.onnxruntime, source="path", path=Path("src"))
    found = refused(replace(spec, spec=replace(spec.spec, onnxruntime=runtime)))
    assert (found.reference, found.where) == ("plan-cannot-travel", "onnxruntime.path")


@pytest.mark.parametrize("limit", [{"LARGEST_FILE": 10}, {"LARGEST_TOTAL": 100}, {"MOST_FILES": 1}])
def test_too_much_is_refused_with_its_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: dict[str, Any]
) -> None:
    """Before anything is sent."""
    write(tmp_path / "x" / "tiny.onnx")
    spec = loaded(tmp_path / "x", SPEC.format("tiny.onnx"))
    for name, value in limit.items():
        monkeypatch.setattr(uploaded_models, name, value)
    found = refused(spec)
    assert found.reference == "upload-too-large"
    assert "2 files of" in found.what
