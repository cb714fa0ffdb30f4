from dataclasses import replace

from ortrim.report.history import entry_of
from sample_reports import on_device, recorded_report

WHEN = "2026-11-21T12:00:00+00:00"


def test_an_entry_holds_what_can_be_compared() -> None:
    report = recorded_report()
    entry = entry_of(report, WHEN)
    assert (entry.file_bytes, entry.components) == (report.size.file_bytes, report.size.components)
    assert (entry.spec, entry.target, entry.recorded_at) == (report.name, report.target, WHEN)
    assert {each.measure for each in entry.measures} == {"load", "peak memory", "p50", "p99"}
    ours = [run for run in report.devices[0].runs if run.library == "ours"]
    assert [each.value for each in entry.measures if each.measure == "load"] == [run.load_ms.p50 for run in ours]
    assert len([each for each in entry.measures if each.measure == "p50"]) == sum(len(run.cases) for run in ours)


def test_a_figure_that_is_no_number_is_left_out() -> None:
    report = recorded_report()
    ours = next(run for run in report.devices[0].runs if run.library == "ours")
    broken = replace(ours, load_ms=replace(ours.load_ms, p50=float("nan")))
    measures = entry_of(on_device(report, runs=(broken,)), WHEN).measures
    assert measures
    assert "load" not in {each.measure for each in measures}


def test_a_library_that_ran_nowhere_has_its_sizes() -> None:
    entry = entry_of(replace(recorded_report(), devices=()), WHEN)
    assert entry.measures == ()
    assert entry.components
