from dataclasses import replace

import pytest

from ortrim.binaries.elf import ComponentSize
from ortrim.parity.measurements import Gate, Verdict
from ortrim.verify.reports import VerifyReport
from sample_reports import four_devices, hostile_board, on_device, recorded_report

SCRIPT = "<script>alert('1')</script>"
LONG = "encoder_" + "very_" * 60 + "long"
NAN = float("nan")
INFINITY = float("inf")


@pytest.fixture
def report() -> VerifyReport:
    return recorded_report()


@pytest.fixture
def side_report() -> VerifyReport:
    return four_devices()


@pytest.fixture
def empty_report(report: VerifyReport) -> VerifyReport:
    size = replace(report.size, file_bytes=0, loadable_bytes=0, compressed_bytes=0, components=(), largest_symbols=())
    nothing = replace(report, size=size, baseline_size=size, comparisons=(), gates=())
    unmeasured = on_device(nothing, comparisons=(), parity=(), runs=(), verdict=Verdict.NOT_JUDGED)
    return replace(unmeasured, compiler_cache=None, verdict=Verdict.NOT_JUDGED)


@pytest.fixture
def ugly_report(report: VerifyReport) -> VerifyReport:
    (device,) = report.devices
    first, ours = device.parity[0], device.runs[0]
    case = ours.cases[0]
    hostile = replace(case, case=SCRIPT, samples_ms=(NAN, INFINITY, 1.0))
    silent = replace(case, case="silent", samples_ms=(), first_run_ms=NAN)
    broken = replace(ours.load_ms, p50=NAN, minimum=NAN, maximum=INFINITY)
    comparisons = (
        replace(device.comparisons[0], model=LONG, verdict=Verdict.FAIL),
        replace(device.comparisons[2], model=SCRIPT, ours=NAN, ratio=INFINITY, spread=NAN),
    )
    parity = (
        replace(first, output=LONG, difference=INFINITY, rms=NAN, cosine=NAN, verdict=Verdict.FAIL),
        replace(first, model=SCRIPT, case="a|b", output="x\n\x1b[2J`y`", verdict=Verdict.FAIL, reason="[a](b) @you"),
        replace(first, model="zero", allowed=0.0, difference=0.5, verdict=Verdict.INCONCLUSIVE),
    )
    runs = (
        replace(ours, model=LONG, cases=(hostile, silent), load_ms=broken),
        replace(device.runs[1], model=SCRIPT, cases=()),
    )
    ugly = on_device(
        report,
        device=f"adb:{SCRIPT}",
        comparisons=device.comparisons + comparisons,
        parity=device.parity + parity,
        runs=device.runs + runs,
        traces=(f"outputs/{SCRIPT}/trace.json",),
        verdict=Verdict.FAIL,
    )
    return replace(
        ugly,
        name=SCRIPT,
        target=f'"{SCRIPT}',
        package=SCRIPT,
        verdict=Verdict.FAIL,
        gates=(*report.gates, Gate(name=SCRIPT, verdict=Verdict.FAIL, detail="https://example.org is <b>RWE</b>")),
        size=replace(report.size, components=(*report.size.components, ComponentSize(component=SCRIPT, size_bytes=9))),
        build_seconds=INFINITY,
    )


@pytest.fixture
def ugly_reports(ugly_report: VerifyReport, side_report: VerifyReport) -> tuple[VerifyReport, VerifyReport]:
    """Alone, and beside other devices with long and hostile names."""
    long = replace(side_report.devices[1], device="ssh:" + "x" * 300)
    devices = (*ugly_report.devices, long, *side_report.devices, hostile_board())
    return ugly_report, replace(ugly_report, devices=devices)
