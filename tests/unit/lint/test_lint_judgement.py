"""Findings in order, in words, in SARIF, and the document that lists the rules."""

import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from onnx import helper

from linted_models import facts
from onnx_samples import model_of, value
from ortrim.analysis.lint.rules import (
    RULES,
    KernelFacts,
    LintFacts,
    LintFinding,
    ModelFindings,
    RunFacts,
    judge,
    lines_of,
)
from ortrim.analysis.lint.run import sarif_log
from ortrim.steps.table import EQUIPPED, PLAIN

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "errors.md"


@pytest.fixture(scope="module")
def bad() -> LintFacts:
    model = model_of([helper.make_node("Add", ["1", "1"], ["2"])], [value("1")], [value("2")])
    return facts(model, kernels=KernelFacts(missing=(("ai.onnx", "Add"), "")), run=RunFacts(load_failure="no"))


def findings(known: LintFacts, path: str = "models/a b.onnx") -> ModelFindings:
    return ModelFindings(
        model=path, file=path, sha256="0" * 64, ort_version="1.21.0", findings=judge(known), not_checked=("all else",)
    )


def log_of(*models: ModelFindings) -> Any:
    return json.loads(json.dumps(sarif_log(models, version="0.1.0")))


def test_errors_come_first_and_places_in_order(bad: LintFacts) -> None:
    found = judge(bad)
    assert [(each.code, each.level, each.place) for each in found] == [
        ("no-kernel", "error", "Add"),
        ("machine-named-value", "advice", "1"),
        ("machine-named-value", "advice", "2"),
    ]
    assert len(set(found)) == len(found)


def test_lines_group_by_rule_with_why_and_fix(bad: LintFacts) -> None:
    lines = lines_of(findings(bad), 1)
    assert [line.split(":")[0].strip() for line in lines] == [
        *("error", "no CPU kernel of ai.onnx Add for float32, float32", "why", "fix"),
        *("advice", "the input is called '1'", "and 1 more", "why", "fix", "not checked"),
    ]
    assert not any("more" in line for line in lines_of(findings(bad), None) if line.startswith("  and"))


def test_a_model_without_findings_has_no_lines() -> None:
    model = ModelFindings(model="m.onnx", file="m.onnx", sha256="", ort_version="1.21.0", findings=())
    assert (lines_of(model, 5), model.errors) == ((), ())


def test_sarif_has_what_the_standard_requires(bad: LintFacts) -> None:
    log = log_of(findings(bad), findings(bad, "/models/x.onnx"))
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "ortrim")
    assert len({rule["id"] for rule in rules}) == len(rules) == len(RULES)
    assert len(run["results"]) == 6
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in {"none", "note", "warning", "error"}
        assert result["message"]["text"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["region"]["startLine"] == 1
    uris = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert set(uris) == {"models/a%20b.onnx", "file:///models/x.onnx"}


@pytest.mark.parametrize("name", ["wheel:small==1.2/a/m.onnx", "https://example.com/a%20b.onnx?x=1#y"])
def test_a_fetched_model_goes_by_its_address(bad: LintFacts, name: str) -> None:
    (result, *_) = log_of(findings(bad, name))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == name


def test_a_finding_keeps_its_fingerprint_in_another_folder(bad: LintFacts) -> None:
    """So that a code review does not take it for a new one; another place has another."""
    first, second = (log_of(findings(bad, path))["runs"][0]["results"] for path in ("a/m.onnx", "b/m.onnx"))
    assert [each["partialFingerprints"] for each in first] == [each["partialFingerprints"] for each in second]
    assert len({each["partialFingerprints"]["ortrim/v1"] for each in first}) == 3


@pytest.mark.parametrize("place", ["\ud800", "\x00", "名前", "", "a" * 10_000])
def test_any_name_makes_a_log_that_can_be_read(place: str) -> None:
    finding = LintFinding(code="einsum", level="advice", place=place, words=place)
    name = f"{place[:10]}.onnx".replace("\ud800", "")
    log = log_of(ModelFindings(model=name, file=name, sha256="", ort_version="1", findings=(finding,)))
    assert log["runs"][0]["results"][0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == place


def test_the_document_lists_every_rule() -> None:
    """Reference, level, title, why and fix, in the order of the table."""
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \| (.*?) \| (.*?) \| (.*?) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert rows == [(rule.code, rule.level, rule.title, rule.why, rule.fix) for rule in RULES]


def test_steps_that_mend_are_steps_that_there_are() -> None:
    named = {name for rule in RULES for name in re.findall(r"\bstep ([a-z0-9-]+)", rule.fix)}
    assert len(named) > 4
    assert named <= {get_args(get_type_hints(kind)["use"])[0] for kind in (*PLAIN, *EQUIPPED)}
