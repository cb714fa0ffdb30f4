"""What a report says, in words and in order; the terminal, Markdown and HTML only give it a form.

The only module of the reports, with the charts, that reads a `VerifyReport`. Every name that comes from a model
or a library passes through `printable` here, and a name longer than `NAME_LETTERS` is cut in its middle.
"""

import math
from dataclasses import dataclass
from typing import Final

from ortrim.console import duration_text, printable
from ortrim.core.measurements import CaseTiming, Comparison, OutputParity, RunnerResult, Verdict, VerifyReport
from ortrim.report.figures import (
    NONE,
    budget_text,
    bytes_text,
    counted,
    difference_text,
    ms_text,
    quantity_text,
    shape_text,
    share_text,
    shortened,
)
from ortrim.report.machine import machine_facts, means_nothing

NAME_LETTERS: Final = 72
CASE_LETTERS: Final = 18
SYMBOLS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.INCONCLUSIVE: "≈", Verdict.NOT_JUDGED: "·"}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One comparison, ready to be read."""

    measure: str
    model: str
    ours: str
    baseline: str
    ratio: str
    ratio_value: float | None
    budget: str
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Part:
    """One component of the library, one symbol: its name, size and share of the whole."""

    name: str
    component: str
    size: str
    share: float
    share_text: str


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """One output's parity, ready to be read."""

    model: str
    case: str
    output: str
    kind: str
    absolute: str
    relative: str
    cosine: str
    argmax: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True, kw_only=True)
class Timing:
    """One case's times on one library, ready to be read."""

    model: str
    case: str
    library: str
    runs: int
    first: str
    p50: str
    p90: str
    p99: str
    split: str


def name_text(name: str) -> str:
    """Write a name so that it can neither steer a terminal nor fill a page."""
    return shortened(printable(name), NAME_LETTERS)


def lines(report: VerifyReport) -> tuple[Line, ...]:
    """Return the comparisons: those of the library first, then model by model in the order of the report."""
    models = dict.fromkeys(["", *(comparison.model for comparison in report.comparisons)])
    ordered = [comparison for model in models for comparison in report.comparisons if comparison.model == model]
    return tuple(_line(comparison, hidden=means_nothing(report.host, comparison)) for comparison in ordered)


def components(report: VerifyReport) -> tuple[Part, ...]:
    """Return the library's components, largest first."""
    found = sorted(report.size.components, key=lambda component: (-component.size_bytes, component.component))
    return tuple(_part(report, name_text(part.component), "", part.size_bytes) for part in found)


def symbols(report: VerifyReport) -> tuple[Part, ...]:
    """Return the library's largest symbols, largest first."""
    found = sorted(report.size.largest_symbols, key=lambda symbol: (-symbol.size_bytes, symbol.name))
    return tuple(_part(report, symbol.name, symbol.component, symbol.size_bytes) for symbol in found)


def agreements(report: VerifyReport) -> tuple[Agreement, ...]:
    """Return every output's parity in the order of the report."""
    return tuple(_agreement(output) for output in report.parity)


def timings(report: VerifyReport) -> tuple[Timing, ...]:
    """Return every case's times, ours and the baseline's next to each other; none when time means nothing there."""
    if not report.host.time_meaningful:
        return ()
    found = [(run, case) for run in report.runs for case in run.cases]
    keys = dict.fromkeys((run.model, case.case) for run, case in found)
    return tuple(_timing(run, case) for key in keys for run, case in found if (run.model, case.case) == key)


def gates(report: VerifyReport) -> tuple[tuple[str, Verdict, str], ...]:
    """Return each gate's name, verdict and detail."""
    return tuple((printable(gate.name), gate.verdict, printable(gate.detail)) for gate in report.gates)


def facts(report: VerifyReport) -> tuple[tuple[str, str], ...]:
    """Return what else is known, as pairs of a label and a value."""
    library, host, cache, units = report.library, report.host, report.compiler_cache, report.units
    pairs = (
        ("package", f"{report.package} ({bytes_text(report.package_bytes)})"),
        ("library", f"{library.soname or NONE}, {library.machine}"),
        ("needs", ", ".join(library.needed) or "nothing"),
        ("symbol versions", ", ".join(library.symbol_versions) or "none"),
        ("exports", ", ".join(library.exported) or "nothing"),
        ("load alignment", f"{library.load_alignment} bytes"),
        ("host", f"{host.system}, {host.machine}, {host.cpu}"),
        ("cores and memory", f"{counted(host.cores, 'core')}, {bytes_text(host.memory_bytes)}"),
        *machine_facts(report),
        ("baseline", report.baseline),
        ("built in", duration_text(report.build_seconds) if math.isfinite(report.build_seconds) else NONE),
        ("compiler cache", f"{cache.hits} of {counted(cache.requests, 'compilation')}" if cache else "not used"),
        ("compiled", f"{units.compiled} of {counted(units.total, 'file')}" if units else "every file"),
        ("plan", report.plan_digest),
        ("made by", f"ortrim {report.ortrim_version}"),
    )
    return tuple((label, printable(value)) for label, value in pairs)


def _line(comparison: Comparison, *, hidden: bool) -> Line:
    return Line(
        measure=_measure_text(comparison),
        model=name_text(comparison.model),
        ours=NONE if hidden else quantity_text(comparison.ours, comparison.unit),
        baseline=NONE if hidden else quantity_text(comparison.baseline, comparison.unit),
        ratio=NONE if hidden else share_text(comparison.ratio, comparison.spread),
        ratio_value=None if hidden else comparison.ratio,
        budget=budget_text(comparison.budget, comparison.unit, is_ratio=comparison.budget_is_ratio),
        verdict=comparison.verdict,
    )


def _measure_text(comparison: Comparison) -> str:
    case = f", {shortened(printable(comparison.case), CASE_LETTERS)}" if comparison.case else ""
    return name_text(comparison.measure) + case


def _part(report: VerifyReport, name: str, component: str, size_bytes: int) -> Part:
    whole = report.size.file_bytes
    share = size_bytes / whole if whole > 0 else 0.0
    return Part(
        name=printable(name),
        component=name_text(component),
        size=bytes_text(size_bytes),
        share=share,
        share_text=share_text(share) if whole > 0 else NONE,
    )


def _agreement(output: OutputParity) -> Agreement:
    return Agreement(
        model=name_text(output.model),
        case=name_text(output.case),
        output=name_text(output.output),
        kind=printable(f"{output.element_type} {shape_text(output.shape)}"),
        absolute=f"{difference_text(output.max_absolute)} of {difference_text(output.absolute_tolerance)}",
        relative=f"{difference_text(output.max_relative)} of {difference_text(output.relative_tolerance)}",
        cosine=f"{output.cosine:.6f}",
        argmax=share_text(output.argmax_agreement),
        verdict=output.verdict,
        reason=printable(output.reason),
    )


def _timing(run: RunnerResult, case: CaseTiming) -> Timing:
    parts = (case.input_ms.p50, case.inference_ms.p50, case.output_ms.p50)
    return Timing(
        model=name_text(run.model),
        case=name_text(case.case),
        library=run.library,
        runs=case.inference_ms.count,
        first=ms_text(case.first_run_ms),
        p50=ms_text(case.inference_ms.p50),
        p90=ms_text(case.inference_ms.p90),
        p99=ms_text(case.inference_ms.p99),
        split=" + ".join(ms_text(part).removesuffix(" ms") for part in parts) + " ms",
    )
