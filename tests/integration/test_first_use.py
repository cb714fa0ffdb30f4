"""From a model to a plan with nothing written: `ortrim init` and `ortrim plan` of models, in the real full runtime."""

import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_samples import branching, model_of, relu, value, write
from ortrim.errors import ExitCode
from program_runs import Run, program_in

CHANNELS = 3


@pytest.fixture
def ortrim(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return program_in(tmp_path, capfd, monkeypatch)


def halves_twice(path: Path) -> Path:
    """Write a model of images whose sides have to be even, unlike the ones that were tried before."""
    weights = numpy_helper.from_array(np.ones((4, CHANNELS, 2, 2), dtype=np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["y"], strides=[2, 2]),
        helper.make_node("Resize", ["y", "", "scales"], ["z"]),
        helper.make_node("Conv", ["image", "ones"], ["same"]),
        helper.make_node("Add", ["z", "same"], ["out"]),
    ]
    ones = numpy_helper.from_array(np.ones((4, CHANNELS, 1, 1), dtype=np.float32), "ones")
    scales = numpy_helper.from_array(np.array([1, 1, 2, 2], dtype=np.float32), "scales")
    model = model_of(
        nodes,
        inputs=[value("image", TensorProto.FLOAT, ("batch", CHANNELS, "height", "width"))],
        outputs=[value("out", TensorProto.FLOAT, None)],
        initializers=[weights, ones, scales],
    )
    return write(path, model)


def test_init_writes_a_buildspec_on_whose_cases_the_model_runs(ortrim: Run) -> None:
    halves_twice(Path("half.onnx"))
    ended = ortrim("init", "half.onnx", "--target", "linux-x64,android")
    assert ended.code == 0, ended.err
    assert "height = " in ended.out
    spec = tomllib.loads(Path("half.toml").read_text())
    (model,) = spec["models"]
    assert (model["name"], model["path"]) == ("half", "half.onnx")
    assert [target["id"] for target in spec["targets"]] == ["linux-x64", "android-arm64-v8a"]
    heights = {case["dimensions"]["height"] for case in model["cases"]}
    assert len(heights) > 1
    assert all(height % 2 == 0 for height in heights)

    again = ortrim("init", "half.onnx")
    assert again.code == ExitCode.USAGE
    assert "spec-exists" in again.err


@pytest.mark.network
def test_a_bench_finds_cases_as_a_build_does(ortrim: Run) -> None:
    halves_twice(Path("half.onnx"))
    ended = ortrim("bench", "half.onnx", "--rounds", "1", "--seconds", "0.05")
    assert ended.code == 0, ended.err
    assert "official wheel" in ended.out
    assert {"half, small", "half, larger"} <= set(ended.out.splitlines())
    ended = ortrim("profile", "half.onnx", "--case", "small", "--runs", "2", "--json")
    assert [each["profile"]["case"] for each in ended.document()["profiles"]] == ["small"]


def test_a_folder_of_models_shares_one_runtime(ortrim: Run) -> None:
    """Each under a name of its own; the buildspec lies beside what is made of it and can be used as it is."""
    Path("nets").mkdir()
    halves_twice(Path("nets") / "Half.onnx")
    write(Path("nets") / "half.b.onnx", relu())
    assert ortrim("init", "nets", "nets/Half.onnx", "--output", "made").code == 0
    spec = tomllib.loads(Path("made/models.toml").read_text())
    assert [model["name"] for model in spec["models"]] == ["half", "half.b", "half-2"]
    assert spec["models"][0]["path"] == "../nets/Half.onnx"


def test_cases_of_ones_own_are_taken_as_they_are(ortrim: Run) -> None:
    """By shape or recorded; then nothing is sought."""
    halves_twice(Path("half.onnx"))
    np.savez("one.npz", image=np.zeros((1, CHANNELS, 4, 4), dtype=np.float32))
    assert ortrim("init", "half.onnx", "--case", "wide:image=1x3x2x8", "--data", "one.npz").code == 0
    cases = tomllib.loads(Path("half.toml").read_text())["models"][0]["cases"]
    assert cases == [
        {"name": "wide", "inputs": {"image": {"shape": [1, 3, 2, 8]}}},
        {"name": "one", "data": "one.npz"},
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("plan", "absent.onnx"), ExitCode.USAGE, "'absent.onnx': there is no such file"),
        (("plan", "empty"), ExitCode.MODEL, "no .onnx file in the folder 'empty'"),
        (("plan", "no*.onnx"), ExitCode.MODEL, "there is no 'no*.onnx'"),
        (("plan", "m.onnx", "--spec", "s.toml"), ExitCode.USAGE, "give models or one buildspec, not both"),
        (("plan", "--spec", "s.toml", "--case", "a:x=1"), ExitCode.USAGE, "a buildspec says this itself"),
        (("plan", "m.onnx", "--case", "a:x=1y2"), ExitCode.USAGE, "write --case NAME:INPUT=1x3x224x224"),
        (("plan", "m.onnx", "--case", "x=1"), ExitCode.USAGE, "write --case NAME:INPUT=1x3x224x224"),
        (("plan", "m.onnx", "--data", "absent.npz"), ExitCode.USAGE, "give an .npz file"),
        (("plan", "wheel:demo/m.onnx"), ExitCode.USAGE, "wheel:NAME==VERSION"),
        (("plan", "wheel:--x==1/m.onnx"), ExitCode.USAGE, "wheel:NAME==VERSION"),
        (("plan", "http://example.com/m.onnx"), ExitCode.USAGE, "is not encrypted"),
        (("init",), ExitCode.USAGE, "ortrim init MODEL.onnx"),
        (("m.onnx",), ExitCode.USAGE, "ortrim build m.onnx"),
    ],
)
def test_what_cannot_be_meant_is_said(ortrim: Run, words: tuple[str, ...], code: ExitCode, said: str) -> None:
    """Before anything is converted or written."""
    Path("empty").mkdir()
    write(Path("m.onnx"), relu())
    ended = ortrim(*words)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert not Path("artifacts").exists()


def test_names_from_outside_stay_names(ortrim: Run) -> None:
    """A model that was downloaded may have names that would end a comment or a string."""
    hostile = 'n\n[[models]]\nurl = "https://example.com"'
    node = helper.make_node("Relu", ["x"], ["y"])
    shape = (hostile, 3)
    model = model_of([node], [value("x", TensorProto.FLOAT, shape)], [value("y", TensorProto.FLOAT, shape)])
    write(Path('a"\x7f\\.onnx'), model)
    assert ortrim("init", 'a"\x7f\\.onnx', "--output", "new", "--target", "linux-x64").code == 0
    (model_spec,) = tomllib.loads(Path("new/a.toml").read_text())["models"]
    assert model_spec["path"] == '../a"\x7f\\.onnx'
    assert {name for case in model_spec["cases"] for name in case["dimensions"]} == {hostile}


def test_a_file_that_no_buildspec_can_name_is_refused(ortrim: Run) -> None:
    bad = os.fsdecode(b"bad\xff.onnx")
    write(Path(bad), relu())
    ended = ortrim("init", bad)
    assert ended.code == ExitCode.MODEL
    assert "name-not-utf8" in ended.err
    assert not list(Path().glob("*.toml"))


@pytest.mark.network
def test_a_plan_of_a_model_needs_no_buildspec(ortrim: Run) -> None:
    """The one that was used lies among the artifacts, and what is written there is no buildspec of the user's."""
    halves_twice(Path("half.onnx"))
    ended = ortrim("plan", "half.onnx", "--target", "linux-x64", "--json")
    assert ended.code == 0, ended.err
    assert ended.document()["spec_name"] == "half"
    assert ortrim("plan", "artifacts/half/half.toml", "--target", "linux-x64", "--json").out == ended.out


@pytest.mark.network
def test_a_part_of_the_graph_that_no_case_runs_can_be_refused(ortrim: Run) -> None:
    """Before anything is compiled, by a budget, also where a target has budgets of its own."""
    write(Path("branches.onnx"), branching())
    Path("strict.toml").write_text("""
budgets = { graph_coverage = 1.0 }
targets = [{ id = "linux-x64", budgets = { load_ms = 5.0 } }]
[[models]]
name = "branches"
path = "branches.onnx"
cases = [{ name = "one", inputs = { c = { value = true } } }]
""")
    ended = ortrim("build", "strict.toml")
    assert ended.code == ExitCode.BUDGET
    assert "budget-missed" in ended.err
    assert "no case enters If_0.else_branch" in ended.err
    assert "build linux-x64" not in ended.out


def test_a_buildspec_without_cases_gets_them(ortrim: Run) -> None:
    """What took two minutes of compiling to fail with sizes of 1 works."""
    halves_twice(Path("half.onnx"))
    Path("own.toml").write_text('[[models]]\nname = "half"\npath = "half.onnx"\n')
    ended = ortrim("convert", "--spec", "own.toml")
    assert ended.code == 0, ended.err
    assert "height = " in ended.out


@pytest.mark.parametrize("name", ["ortrim", "invoke"])
def test_each_stage_is_one_command_in_an_empty_folder(ortrim: Run, name: str) -> None:
    """The converted model with its settings beside it, and the operators alone on standard output."""
    halves_twice(Path("half.onnx"))
    ended = ortrim("convert", "half.onnx", name=name)
    assert (ended.code, ended.err) == (0, "")
    assert sorted(path.name for path in Path().iterdir()) == ["half.onnx", "half.ort", "session.json"]
    assert json.loads(Path("session.json").read_text())["models"]["half"]["file"] == "half.ort"
    ended = ortrim("reduce", "half.onnx", name=name)
    assert ended.code == 0
    assert {line.split(";")[0] for line in ended.out.splitlines() if line} == {"ai.onnx"}
    assert "Conv" in ended.out
    ended = ortrim("cost", "half.onnx", "--json", name=name)
    assert {each["at_least"] for each in ended.document()["costs"]} == {False}
