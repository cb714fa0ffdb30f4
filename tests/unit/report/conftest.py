from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.core.measurements import ComponentSize, Gate, Verdict, VerifyReport
from ortrim.report.write import read_report

DATA = Path(__file__).parent / "data"
SCRIPT = "<script>alert('1')</script>"
LONG = "encoder_" + "very_" * 60 + "long"
NAN = float("nan")
INFINITY = float("inf")


@pytest.fixture
def report() -> VerifyReport:
    """Return a report with the figures of the demo model."""
    return read_report(DATA / "report.json")


@pytest.fixture
def empty_report(report: VerifyReport) -> VerifyReport:
    """Return a report of a verification that could measure next to nothing."""
    size = replace(report.size, file_bytes=0, loadable_bytes=0, compressed_bytes=0, components=(), largest_symbols=())
    nothing = replace(report, size=size, baseline_size=size, comparisons=(), parity=(), gates=(), runs=())
    return replace(nothing, compiler_cache=None, verdict=Verdict.NOT_JUDGED)


@pytest.fixture
def ugly_report(report: VerifyReport) -> VerifyReport:
    """Return a failed report of several models with hostile and long names, gaps, and values that are no numbers."""
    first, ours = report.parity[0], report.runs[0]
    case = ours.cases[0]
    hostile = replace(case, case=SCRIPT, samples_ms=(NAN, INFINITY, 1.0))
    silent = replace(case, case="silent", samples_ms=(), first_run_ms=NAN)
    broken = replace(ours.load_ms, p50=NAN, minimum=NAN, maximum=INFINITY)
    comparisons = (
        replace(report.comparisons[3], model=LONG, verdict=Verdict.FAIL),
        replace(report.comparisons[5], model=SCRIPT, ours=NAN, ratio=INFINITY, spread=NAN),
    )
    parity = (
        replace(first, output=LONG, max_absolute=INFINITY, max_relative=NAN, cosine=NAN, verdict=Verdict.FAIL),
        replace(first, model=SCRIPT, case="a|b", output="x\n\x1b[2J`y`", verdict=Verdict.FAIL, reason="[a](b) @you"),
        replace(first, model="zero", absolute_tolerance=0.0, max_absolute=0.5, verdict=Verdict.INCONCLUSIVE),
    )
    runs = (
        replace(ours, model=LONG, cases=(hostile, silent), load_ms=broken),
        replace(report.runs[1], model=SCRIPT, cases=()),
    )
    return replace(
        report,
        name=SCRIPT,
        target=f'"{SCRIPT}',
        package=SCRIPT,
        verdict=Verdict.FAIL,
        comparisons=report.comparisons + comparisons,
        parity=report.parity + parity,
        gates=(*report.gates, Gate(name=SCRIPT, verdict=Verdict.FAIL, detail="https://example.org is <b>RWE</b>")),
        runs=report.runs + runs,
        size=replace(report.size, components=(*report.size.components, ComponentSize(component=SCRIPT, size_bytes=9))),
        build_seconds=INFINITY,
    )
