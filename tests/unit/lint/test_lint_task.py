"""`lint` at its boundary; what the full runtime says is made up here, and real in the integration tests."""

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from onnx_samples import model_of, relu, value, weighted, write
from ortrim.analysis.lint import run as lint_run
from ortrim.analysis.lint.rules import KernelFacts, LintFacts, RunFacts
from ortrim.analysis.size import Sized
from ortrim.errors import ExitCode, ToolError, VerifyError
from ortrim.models.graph_facts import GraphFacts
from ortrim.size.accounting import Accounting, Leaf
from prepared_by_steps import STEPS, after_steps
from program_runs import Run

Looked = dict[str, dict[str, Any]]
"""What the full runtime says of a file, by the names of facts."""


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Looked:
    """Answer for the full runtime: with what the test puts in for a file's name, else that all is well."""
    answers: Looked = {}
    well = {"kernels": KernelFacts(), "run": RunFacts(), "providers": ()}

    def look(path: Path, graph: GraphFacts, *_: object, **__: object) -> LintFacts:
        return LintFacts(graph=graph, version="1.21.0", **answers.get(path.name, well))

    monkeypatch.setattr(lint_run, "look", look)
    return answers


@pytest.fixture
def good(tmp_path: Path) -> str:
    return str(write(tmp_path / "good.onnx", relu()))


@pytest.fixture
def named_by_machine(tmp_path: Path) -> str:
    ends = [value("input.1")], [value("y")]
    return str(write(tmp_path / "advised.onnx", model_of([helper.make_node("Relu", ["input.1"], ["y"])], *ends)))


def test_a_good_model_ends_well(ortrim: Run, looked: Looked, good: str) -> None:
    ended = ortrim("lint", good)
    assert (ended.code, ended.err) == (0, "")
    assert "good.onnx: 0 errors, advice: 0" in ended.out.replace("\n", "")


def test_advice_alone_ends_well(ortrim: Run, looked: Looked, named_by_machine: str) -> None:
    ended = ortrim("lint", named_by_machine)
    assert ended.code == 0
    assert "advice: machine-named-value" in ended.out
    assert "  fix: give names when exporting" in ended.out


def test_an_error_has_the_code_of_models(ortrim: Run, looked: Looked, good: str) -> None:
    looked["good.onnx"] = {"run": RunFacts(load_failure="type mismatch")}
    ended = ortrim("lint", good)
    assert ended.code == 11
    assert ended.err.startswith("error: lint-errors\n")
    assert "does-not-load: type mismatch" in ended.err


def test_one_json_document_and_a_sarif_file(
    ortrim: Run, looked: Looked, good: str, named_by_machine: str, tmp_path: Path
) -> None:
    looked["good.onnx"] = {"run": RunFacts(crash="crashed (SIGSEGV)")}
    ended = ortrim("lint", good, named_by_machine, "--json", "--sarif", str(tmp_path / "lint.sarif"))
    document = ended.document()
    assert (ended.code, document["schema"], len(document["models"])) == (11, "ortrim-lint/1", 2)
    assert document["errors"][0]["code"] == "lint-errors"
    found = [each["code"] for model in document["models"] for each in model["findings"]]
    assert found == ["crashes-runtime", "machine-named-value"]
    log = json.loads((tmp_path / "lint.sarif").read_text())
    assert [each["ruleId"] for each in log["runs"][0]["results"]] == found


def test_each_model_has_its_verdict(
    ortrim: Run, looked: Looked, good: str, named_by_machine: str, tmp_path: Path
) -> None:
    """Whatever is wrong with another; the exit code is that of the worst."""
    mute = relu()
    del mute.graph.output[:]
    twice = [helper.make_node(name, ["x"], ["y"]) for name in ("Relu", "Abs")]
    invalid = write(tmp_path / "invalid.onnx", model_of(twice))
    (tmp_path / "text.onnx").write_text("hello")
    words = [
        str(write(tmp_path / "mute.onnx", mute)),
        good,
        str(tmp_path / "text.onnx"),
        str(invalid),
        named_by_machine,
    ]
    sarif = tmp_path / "lint.sarif"
    ended = ortrim("lint", *words, "--json", "--sarif", str(sarif))
    found = [[each["code"] for each in model["findings"]] for model in ended.document()["models"]]
    assert found == [["no-outputs"], [], ["not-onnx"], ["model-invalid"], ["machine-named-value"]]
    assert (ended.code, ended.document()["errors"][0]["what"]) == (11, "3 of 5 models have errors")
    ids = [each["ruleId"] for each in json.loads(sarif.read_text())["runs"][0]["results"]]
    assert ids == ["no-outputs", "not-onnx", "model-invalid", "machine-named-value"]
    shown = ortrim("lint", *words)
    assert "error: no-outputs: the model has no outputs; export it again with its outputs" in shown.out
    looked["good.onnx"] = {"kernels": KernelFacts(missing=(("ai.onnx", "Relu"), ""))}
    assert ortrim("lint", *words).code == 13
    for word in words[::2][:2]:
        assert ortrim("lint", word).err.splitlines()[0] in ("error: no-outputs", "error: not-onnx")


def test_models_are_named_as_for_a_build(
    ortrim: Run, looked: Looked, good: str, named_by_machine: str, tmp_path: Path
) -> None:
    """Folders, patterns and buildspecs side by side; each model has a paragraph of its own."""
    spec = tmp_path / "net.toml"
    spec.write_text('[[models]]\nname = "net"\npath = "good.onnx"\n')
    ended = ortrim("lint", str(tmp_path), str(tmp_path / "g*.onnx"), str(spec))
    assert ended.code == 0, ended.err
    shown = [line for line in ended.out.splitlines() if "errors, advice" in line]
    assert [Path(line.partition(":")[0]).name for line in shown] == ["advised.onnx", *(["good.onnx"] * 3)]
    assert ended.out.count("\n\n") == 3


@pytest.mark.parametrize(
    ("words", "code", "reference"),
    [
        ("", 2, "no-model"),
        ("absent.onnx", 2, "unknown-word"),
        ("good.onnx --ort-version 0.1", 2, "unknown-version"),
        ("good.onnx --profile huge", 2, "bad-option"),
        ("good.onnx --sarif text.onnx/lint.sarif", 22, ""),
        ("good.onnx --library absent.so", 20, ""),
        ("text.onnx", 11, "not-onnx"),
        ("empty.onnx", 11, "not-onnx"),
        ("absent.toml", 2, "unknown-word"),
        ("--spec absent.toml", 10, "spec-missing"),
    ],
)
def test_trouble_ends_with_its_own_code(ortrim: Run, looked: Looked, words: str, code: int, reference: str) -> None:
    here = Path.cwd()
    write(here / "good.onnx", relu())
    (here / "text.onnx").write_text("<html>")
    (here / "empty.onnx").write_bytes(b"")
    ended = ortrim("lint", *words.split(), "--json")
    assert ended.code == code
    assert reference in ended.document()["errors"][0]["code"]
    assert sorted(path.name for path in here.iterdir()) == ["empty.onnx", "good.onnx", "text.onnx"]


def test_a_runtime_that_cannot_be_had_is_no_finding(ortrim: Run, good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ToolError("converter-unavailable", "is not available here")

    monkeypatch.setattr(lint_run, "full_runtime", refuse)
    assert ortrim("lint", good).code == 16


RELU = Leaf(component="providers", section=".text", size_bytes=20_000, operator="Relu")
OTHER = Leaf(component="providers", section=".text", size_bytes=90_000)


def test_what_operators_cost_is_reported_of_a_library(
    ortrim: Run, looked: Looked, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounting = Accounting(file_bytes=110_000, zeroed_bytes=0, leaves=(RELU, OTHER), mapped=True, notes=())
    sized = Sized(name="l", library=Path("l.so"), link_map=None, accounting=accounting)
    monkeypatch.setattr(lint_run, "size_of", lambda *_: sized)
    (model,) = ortrim("lint", good, "--library", "l.so", "--json").document()["models"]
    words = [(each["code"], each["words"]) for each in model["findings"]]
    assert words == [("costly-operator", "removing Relu (1 node) saves 20 KiB of the library")]
    assert model["not_checked"] == []


def test_a_buildspec_without_a_build_is_judged_all_the_same(
    ortrim: Run, looked: Looked, good: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    def refuse(*_: object) -> Sized:
        raise VerifyError("not-built", "there is no finished build")

    monkeypatch.setattr(lint_run, "size_of", refuse)
    spec = Path(good).with_name("spec.toml")
    spec.write_text('name = "spec"\n[[models]]\nname = "relu"\npath = "good.onnx"\n[[targets]]\nid = "linux-x64"\n')
    ended = ortrim("lint", str(spec), "--json")
    assert ended.code == 0, ended.out
    (model,) = ended.document()["models"]
    assert model["model"] == good
    assert model["not_checked"] == ["what operators cost: there is no finished build"]


def test_models_with_steps_are_judged_after_them(
    ortrim: Run, looked: Looked, named_by_machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are shipped; `--given` judges what the buildspec names. A code review is led to that file."""
    after_steps(monkeypatch, tmp_path, relu())
    spec = Path(named_by_machine).with_name("spec.toml")
    spec.write_text(f'[[models]]\nname = "m"\npath = "advised.onnx"\n{STEPS}[[targets]]\nid = "linux-x64"\n')
    words = ("lint", str(spec), "--sarif", "lint.sarif")
    monkeypatch.setattr(lint_run, "_library_sizes", lambda *_: (None, ()))
    ended = ortrim(*words)
    assert (ended.code, ended.err) == (0, "")
    assert "advised.onnx, after its steps: 0 errors, advice: 0" in ended.out.replace("\n", "")
    (given,) = ortrim(*words, "--given", "--json").document()["models"]
    assert (given["model"], given["steps"], len(given["findings"])) == (named_by_machine, [], 1)
    (result,) = json.loads(Path("lint.sarif").read_text())["runs"][0]["results"]
    address = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert address == f"file://{named_by_machine}"


def test_weights_that_are_not_beside_the_model_are_named(ortrim: Run, looked: Looked) -> None:
    write(Path("m.onnx"), weighted("m.onnx_data"))
    ended = ortrim("lint", "m.onnx", "--no-run")
    assert ended.code == ExitCode.MODEL
    assert ended.err == (
        "error: missing-external-data\n  m.onnx: the model keeps weights in 'm.onnx_data', which is not in its folder\n"
        "  why: missing: m.onnx_data\n  hint: put it into the model's folder\n"
    )
