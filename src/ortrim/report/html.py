"""The report as one HTML file that asks the network for nothing: style and charts are inside it.

- The frame of every page: one file that asks the network for nothing, with every name in it escaped.
"""

from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from ortrim.base.console import counted
from ortrim.parity.measurements import Verdict
from ortrim.report.charts import (
    PARITY_ROWS,
    component_chart,
    latency_pictures,
    load_chart,
    memory_chart,
    parity_chart,
    total_chart,
)
from ortrim.report.content import (
    SYMBOLS,
    ReportLine,
    agreements,
    all_lines,
    build_facts,
    components,
    device_facts,
    device_lines,
    failure_lines,
    findings,
    gates,
    library_lines,
    package_facts,
    several_models,
    symbols,
    timings,
)
from ortrim.report.figures import bytes_text, name_text, share_text
from ortrim.report.summary import coverage_texts, parity_text, subtitle, title, verdict_text
from ortrim.report.terminal import device_names, side_by_side
from ortrim.report.treemap import report_tiles
from ortrim.verify.reports import DeviceReport, VerifyReport


def rendered(template: str, **values: Any) -> str:
    """Return a page of `data/report` filled in."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ortrim", "resources/report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(counted=counted, share=share_text, bytes=bytes_text)
    environment.globals.update(symbol=SYMBOLS)
    return environment


TILES: Final = 4


def html_report(report: VerifyReport) -> str:
    """Return the report as HTML; every name in it is escaped."""
    return rendered(
        "report.html.j2",
        title=title(report),
        subtitle=subtitle(report),
        verdict=report.verdict,
        verdict_text=verdict_text(report),
        tiles=_tiles(all_lines(report)),
        several_models=several_models(all_lines(report)),
        library_lines=library_lines(report),
        devices=[
            {**device_parts(device, number, _baseline(report, device)), "facts": device_facts(device)}
            for number, device in enumerate(report.devices, 1)
        ],
        device_names=device_names(report),
        side_by_side=side_by_side(report),
        coverage=coverage_texts(report),
        gates=gates(report),
        components=components(report),
        symbols=symbols(report),
        package_facts=package_facts(report),
        build_facts=build_facts(report),
        total_chart=total_chart(report),
        component_chart=component_chart(report),
        families=report_tiles(report.size),
    )


def _baseline(report: VerifyReport, device: DeviceReport) -> str:
    """Return the baseline that needs no word at a device: the head of the page names that of a single one."""
    return report.baseline if len(report.devices) > 1 else device.baseline


def device_parts(device: DeviceReport, number: int, baseline: str) -> dict[str, Any]:
    """Return what a page says of one device; `number` tells its pictures from those of others."""
    return {
        "number": number,
        "name": name_text(device.device),
        "verdict": device.verdict,
        "failure": failure_lines(device.failure) if device.failure else (),
        "lines": device_lines(device),
        "parity_text": parity_text(device),
        "parity": agreements(device),
        "parity_left_out": max(0, len(device.parity) - PARITY_ROWS),
        "parity_chart": parity_chart(device),
        "memory_chart": memory_chart(device),
        "load_chart": load_chart(device),
        "latency_pictures": latency_pictures(device),
        "timings": timings(device),
        "findings": findings(device, baseline),
    }


def _tiles(shown: tuple[ReportLine, ...]) -> tuple[ReportLine, ...]:
    """Choose the figures for the head of the page: judged measures first, each measure once."""
    compared = [line for line in shown if line.ratio_value is not None]
    judged = sorted(compared, key=lambda line: line.verdict is Verdict.NOT_JUDGED)
    once: dict[str, ReportLine] = {}
    for line in judged:
        kept = once.setdefault(line.measure, line)
        if (line.ratio_value or 0) > (kept.ratio_value or 0):
            once[line.measure] = line
    return tuple(once.values())[:TILES]
