"""A model's file in the place of a buildspec."""

from pathlib import Path

import pytest
from onnx import helper

from onnx_samples import model_of, value, write
from ortrim.errors import Diagnostic, ExitCode
from ortrim.pipeline.request import refuse_sizes, spec_of_model
from ortrim.spec.buildspec import InputSpec


@pytest.fixture(name="path")
def fixture_path(tmp_path: Path) -> Path:
    """Write a model whose first input has a dimension with a name and one without."""
    inputs = [value("x", shape=("n", None, 4)), value("z", shape=("n", 2))]
    return write(tmp_path / "My Net!.onnx", model_of([helper.make_node("Add", ["x", "z"], ["y"])], inputs))


def test_a_file_becomes_a_buildspec_of_one_model(path: Path) -> None:
    """With a name that a buildspec takes, and one case."""
    loaded = spec_of_model(path, {})
    (model,) = loaded.spec.models
    assert (loaded.spec.name, model.name, loaded.resolve(model.path or Path())) == ("my-net", "my-net", path)
    assert [(case.name, case.dimensions, case.inputs) for case in model.cases] == [("default", {}, {})]


def test_sizes_are_given_by_name_or_by_place(path: Path) -> None:
    """An input with a size by its place has all of its shape; of what nobody gives a size there is one."""
    (case,) = spec_of_model(path, {"n": 5, "x:1": 3}).spec.models[0].cases
    assert (case.dimensions, case.inputs) == ({"n": 5}, {"x": InputSpec(shape=(5, 3, 4))})
    (case,) = spec_of_model(path, {"x:1": 3}).spec.models[0].cases
    assert (case.dimensions, case.inputs) == ({}, {"x": InputSpec(shape=(1, 3, 4))})


@pytest.mark.parametrize(
    ("sizes", "hint"),
    [({"m": 1}, "n, x:1"), ({"x:2": 1}, "did you mean 'x:1'?"), ({"batch": 1}, "n, x:1")],
)
def test_sizes_of_nothing_are_refused(path: Path, sizes: dict[str, int], hint: str) -> None:
    """As `cost` refuses them: it is the command line that is wrong, not a buildspec."""
    with pytest.raises(Diagnostic) as caught:
        spec_of_model(path, sizes)
    assert (caught.value.code, caught.value.where, caught.value.exit_code) == (
        "bad-option",
        "--dim",
        ExitCode.USAGE,
    )
    assert hint in caught.value.hint


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF"])
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """With the code of models; a buildspec takes no sizes at all."""
    if content is not None:
        (tmp_path / "m.onnx").write_bytes(content)
    with pytest.raises(Diagnostic) as caught:
        spec_of_model(tmp_path / "m.onnx", {"n": 1})
    assert caught.value.exit_code == ExitCode.MODEL
    with pytest.raises(Diagnostic) as caught:
        refuse_sizes({"n": 1})
    assert (caught.value.exit_code, caught.value.where) == (ExitCode.USAGE, "--dim")
