"""`invoke cost` from its command line to what it prints."""

from pathlib import Path
from types import SimpleNamespace

import onnxruntime
import pytest
from onnx import helper

from onnx_samples import model_of, relu, value, write
from ortrim.analysis.cost import run as cost_run
from ortrim.buildspec.buildspec import CaseSpec
from ortrim.errors import VerifyError
from ortrim.models.full_runtime import full_runtime
from prepared_by_steps import STEPS, after_steps
from program_runs import Run


@pytest.fixture(name="model")
def fixture_model(tmp_path: Path) -> Path:
    node = helper.make_node("MatMul", ["x", "x2"], ["y"])
    inputs = [value("x", shape=("length", 4)), value("x2", shape=(4, 3))]
    return write(tmp_path / "m.onnx", model_of([node], inputs, [value("y", shape=("length", 3))]))


def test_a_model_is_counted_for_the_sizes_given(ortrim: Run, model: Path) -> None:
    ended = ortrim("cost", str(model), "--dim", "length=5")
    assert (ended.code, ended.err) == (0, "")
    assert "m.onnx: x 5x4; x2 4x3" in ended.out
    (found,) = ortrim("cost", str(model), "--dim", "length=5", "--json").document()["costs"]
    assert (found["macs"], found["at_least"], found["operators"][0]["operator"]) == (60, False, "MatMul")


def test_without_a_size_it_is_counted_in_the_cases_found(
    ortrim: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that a build would find; the user's own come before them."""
    found = tuple(CaseSpec(name=f"at-{size}", dimensions={"length": size}) for size in (2, 3))
    monkeypatch.setattr(cost_run, "full_runtime", lambda *_: None)
    monkeypatch.setattr(cost_run, "found_for", lambda *_: SimpleNamespace(cases=found))
    costs = ortrim("cost", str(model), "--json").document()["costs"]
    assert [(each["model"], each["case"], each["macs"]) for each in costs] == [
        (str(model), "at-2", 24), (str(model), "at-3", 36),
    ]  # fmt: skip
    own = ("--case", "own:x=5x4", "--case", "own:x2=4x3")
    (own_cost,) = ortrim("cost", str(model), *own, "--json").document()["costs"]
    assert (own_cost["case"], own_cost["macs"]) == ("own", 60)


def test_a_case_that_another_feeds_is_counted_too(ortrim: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = helper.make_node("Concat", ["past_key", "x"], ["present_key"], axis=0)
    inputs = [value("past_key", shape=("before", 4)), value("x", shape=(1, 4))]
    model = write(tmp_path / "m.onnx", model_of([node], inputs, [value("present_key", shape=("after", 4))]))
    found = (CaseSpec(name="first", dimensions={"before": 2}), CaseSpec(name="next", after="first"))
    monkeypatch.setenv("ORTRIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cost_run, "full_runtime", lambda *_: full_runtime(onnxruntime.__version__, None))
    monkeypatch.setattr(cost_run, "found_for", lambda *_: SimpleNamespace(cases=found))
    costs = ortrim("cost", str(model), "--json").document()["costs"]
    assert [each["case"] for each in costs] == ["first", "next"]


def test_where_no_case_is_found_the_sums_are_lower_bounds(
    ortrim: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> None:
        raise VerifyError("no-case-found", "the full runtime ran the model with no sizes")

    monkeypatch.setattr(cost_run, "full_runtime", lambda *_: None)
    monkeypatch.setattr(cost_run, "found_for", nothing)
    ended = ortrim("cost", str(model))
    assert ended.code == 0
    assert "the full runtime ran the model with no sizes): give --dim or --case" in ended.out
    assert "--dim length=..." in ended.out
    assert "at least 0" in ended.out


@pytest.mark.parametrize(
    ("word", "hint"),
    [("lenght=5", "did you mean 'length'?"), ("q=5", "length"), ("length=-1", "--dim batch=1"), ("=5", "--dim"),
     ("length", "--dim"), ("length=99999999999", "--dim"), ("length=\u0663", "--dim")],
)  # fmt: skip
def test_sizes_that_make_no_sense_are_refused(ortrim: Run, model: Path, word: str, hint: str) -> None:
    ended = ortrim("cost", str(model), "--dim", word)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: bad-option\n")
    assert hint in ended.err


@pytest.mark.parametrize(
    ("content", "reference"), [(b"", "not-onnx"), (b"    ORTM", "not-onnx"), (b"\x7fELF", "not-onnx")]
)
def test_what_is_no_model_is_a_diagnostic(ortrim: Run, tmp_path: Path, content: bytes, reference: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    ended = ortrim("cost", str(path), "--json")
    assert ended.code == 11
    assert [error["code"] for error in ended.document()["errors"]] == [reference]


BUILDSPEC = """
name = "two"
[[models]]
name = "net"
path = "m.onnx"
[[models.cases]]
name = "short"
dimensions = { length = 2 }
[[models.cases]]
name = "as-short"
seed = 1
dimensions = { length = 2 }
[[models.cases]]
name = "long"
dimensions = { length = 7 }
[[targets]]
id = "linux-x64"
"""


def test_of_a_buildspec_every_case_is_counted(ortrim: Run, model: Path) -> None:
    spec = model.parent / "two.toml"
    spec.write_text(BUILDSPEC)
    costs = ortrim("cost", str(spec), "--json").document()["costs"]
    assert [(each["model"], each["case"], each["macs"]) for each in costs] == [
        ("net", "short", 24),
        ("net", "long", 84),
    ]


def test_sizes_do_not_go_with_a_buildspec(ortrim: Run, model: Path) -> None:
    spec = model.parent / "two.toml"
    spec.write_text(BUILDSPEC)
    ended = ortrim("cost", str(spec), "--dim", "length=5")
    assert ended.code == 2
    assert "error: bad-option" in ended.err


def test_several_models_have_a_paragraph_each(ortrim: Run, model: Path) -> None:
    """A size is for those that leave it open; one that none does is refused."""
    write(model.parent / "r.onnx", relu())
    ended = ortrim("cost", str(model.parent), "--dim", "length=5")
    assert (ended.code, ended.err) == (0, "")
    assert [line.partition("m.onnx: ")[2] for line in ended.out.splitlines() if "m.onnx" in line] == ["x 5x4; x2 4x3"]
    assert "r.onnx: x " in ended.out.partition("m.onnx")[2]
    assert "did you mean 'length'?" in ortrim("cost", str(model.parent), "--dim", "lenth=5").err


def test_a_model_without_open_dimensions_needs_none(ortrim: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", relu())
    assert "1" in ortrim("cost", str(path)).out
    assert "dynamic dimensions: none" in ortrim("cost", str(path), "--dim", "n=1").err


def test_a_model_with_steps_is_counted_after_them(
    ortrim: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is said; `--given` counts it as it was before."""
    after_steps(monkeypatch, tmp_path, relu())
    spec = model.parent / "steps.toml"
    spec.write_text(f'[[models]]\nname = "net"\npath = "m.onnx"\n{STEPS}[[targets]]\nid = "linux-x64"\n')
    ended = ortrim("cost", str(spec), "--json")
    (found,) = ended.document()["costs"]
    assert (found["macs"], found["operations"]) == (0, 1)
    assert "net is counted after its steps: simplify" in ended.err
    (given,) = ortrim("cost", str(spec), "--given", "--json").document()["costs"]
    assert given["macs"] > 0
