"""The report as Markdown, and as one HTML file that asks the network for nothing: style and charts are inside it.

Both are templates of `resources/report`, filled with the same values.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from ortrim.base.console import counted
from ortrim.parity.measurements import Verdict
from ortrim.report import charts, content
from ortrim.report.content import ReportLine, all_lines
from ortrim.report.figures import bytes_text, name_text, share_text
from ortrim.report.table import SYMBOLS, Table, escaped, facts_table
from ortrim.report.terminal import device_names, side_by_side
from ortrim.verify.reports import DeviceReport, VerifyReport


def rendered(template: str, **values: Any) -> str:
    """Return a page of `resources/report` filled in."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ortrim", "resources/report"),
        autoescape=select_autoescape(disabled_extensions=("md.j2",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(counted=counted, share=share_text, bytes=bytes_text, escaped=escaped)
    environment.globals.update(symbol=SYMBOLS, facts_table=facts_table, measures=content.comparison_table)
    return environment


TILES: Final = 4


def markdown_report(report: VerifyReport) -> str:
    """Return the report as Markdown that ends with a newline; no name in it can become markup."""
    groups = side_by_side(report)
    rows = [row for group in groups for row in (((group.title,), *group.rows) if group.title else group.rows)]
    text = rendered(
        "report.md.j2",
        **_values(report),
        devices=[_device_values(device, device.baseline) for device in report.devices],
        comparisons=_comparisons,
        beside=Table(columns=groups[0].columns, rows=rows).markdown(),
        components=content.component_table(report),
        has_models=bool(report.models),
    )
    return re.sub(r"\n{3,}", "\n\n", text).lstrip("\n")


def _comparisons(lines: Sequence[ReportLine]) -> str:
    return content.comparison_table(lines, several_models=content.several_models(lines)).markdown()


def html_report(report: VerifyReport) -> str:
    """Return the report as HTML; every name in it is escaped."""
    several = len(report.devices) > 1
    return rendered(
        "report.html.j2",
        **_values(report),
        tiles=_tiles(all_lines(report)),
        several_models=content.several_models(all_lines(report)),
        devices=[
            # The head of the page names the baseline of a single device.
            device_parts(device, number, report.baseline if several else device.baseline)
            for number, device in enumerate(report.devices, 1)
        ],
        device_names=device_names(report),
        side_by_side=side_by_side(report),
        total_chart=charts.total_chart(report),
        component_chart=charts.component_chart(report),
        families=charts.report_tiles(report.size),
    )


def _values(report: VerifyReport) -> dict[str, Any]:
    """Return what a report says of the library in any form."""
    return {
        "title": content.title(report),
        "subtitle": content.subtitle(report),
        "verdict": report.verdict,
        "verdict_text": content.verdict_text(report),
        "library_lines": content.library_lines(report),
        "coverage": content.coverage_texts(report),
        "gates": content.gate_table(report),
        "symbols": content.symbol_table(report),
        "package_facts": content.package_facts(report),
        "build_facts": content.build_facts(report),
    }


def _device_values(device: DeviceReport, baseline: str) -> dict[str, Any]:
    """Return what a report says of one device in any form."""
    return {
        "name": name_text(device.device),
        "verdict": device.verdict,
        "failure": content.failure_lines(device.failure) if device.failure else (),
        "lines": content.device_lines(device),
        "facts": content.device_facts(device),
        "parity_text": content.parity_text(device),
        "parity": content.parity_table(device),
        "timings": content.timings(device),
        "findings": content.findings(device, baseline),
    }


def device_parts(device: DeviceReport, number: int, baseline: str) -> dict[str, Any]:
    """Return what a page says of one device; `number` tells its pictures from those of others."""
    return _device_values(device, baseline) | {
        "number": number,
        "parity_left_out": max(0, len(device.parity) - charts.PARITY_ROWS),
        "parity_chart": charts.parity_chart(device),
        "memory_chart": charts.memory_chart(device),
        "load_chart": charts.load_chart(device),
        "latency_pictures": charts.latency_pictures(device),
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
