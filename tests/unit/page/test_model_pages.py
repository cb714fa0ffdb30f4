"""Pages of models beside a target's reports."""

from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.analysis.lint.rules import LintFacts
from ortrim.analysis.page import make_model_pages
from ortrim.errors import StorageError, UsageError
from ortrim.models.graph_facts import GraphFacts
from ortrim.planning.planned import Planned, planned_for, target_folder
from ortrim.report.write import read_report, write_reports
from ortrim.verify.reports import VerifyReport
from pipeline_stages import Stages, leave_report
from refusing import refused
from sample_reports import on_device


@pytest.fixture(autouse=True)
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(_: object, graph: GraphFacts, **__: object) -> LintFacts:
        return LintFacts(graph=graph, version="1.21.0", not_checked=("the runtime",))

    monkeypatch.setattr("ortrim.analysis.lint.run._looked", looked)


def of_tiny(report: VerifyReport) -> VerifyReport:
    (device,) = report.devices
    runs = tuple(replace(run, model="tiny") for run in device.runs)
    parity = tuple(replace(each, model="tiny") for each in device.parity)
    return on_device(report, runs=runs, parity=parity)


def planned_folder(stages: Stages) -> tuple[Planned, Path]:
    """Return a plan of one target, and its folder."""
    planned = planned_for(stages.request(), stages.console)
    return planned, target_folder(planned, planned.plan.targets[0])


def test_a_page_before_anything_was_built(stages: Stages) -> None:
    (page,) = make_model_pages(stages.request(), (), stages.console, run=True)
    assert page == planned_folder(stages)[1] / "model-tiny.html"
    text = page.read_text()
    assert "Relu" in text
    assert "Not verified yet" in text


def test_a_page_with_the_last_reports_figures(stages: Stages) -> None:
    planned, _ = planned_folder(stages)
    folder = leave_report(planned, planned.plan.targets[0])
    write_reports(of_tiny(read_report(folder / "report.json")), folder)
    (page,) = make_model_pages(stages.request(), ("tiny",), stages.console, run=False)
    assert "Not verified yet" not in page.read_text()
    assert "chart-latency" in page.read_text()


def test_an_unknown_model_is_refused(stages: Stages) -> None:
    error = refused(UsageError, make_model_pages, stages.request(), ("tinny",), stages.console, run=True)
    assert (error.code, error.hint) == ("no-such-model", "did you mean 'tiny'?")
    assert not planned_folder(stages)[1].exists()


def test_a_damaged_report_is_said_to_be_so(stages: Stages) -> None:
    """Rather than a page without measurements; one of an older version is as good as none."""
    _, folder = planned_folder(stages)
    folder.mkdir(parents=True)
    (folder / "report.json").write_text("{")
    assert (
        refused(StorageError, make_model_pages, stages.request(), (), stages.console, run=True).code == "report-damaged"
    )
    (folder / "report.json").write_text('{"schema": "ortrim-report/1"}')
    (page,) = make_model_pages(stages.request(), (), stages.console, run=True)
    assert "Not verified yet" in page.read_text()
