"""The report as one HTML file that asks the network for nothing: style and pictures are inside it."""

from functools import cache
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from ortrim.core.measurements import Verdict, VerifyReport
from ortrim.report.charts import component_chart, load_chart, memory_chart, total_chart
from ortrim.report.content import SYMBOLS, Line, agreements, components, facts, gates, lines, symbols, timings
from ortrim.report.figures import counted, share_text
from ortrim.report.latency import latency_pictures
from ortrim.report.parity import PARITY_ROWS, parity_chart
from ortrim.report.summary import parity_text, subtitle, title, verdict_text

TILES: Final = 4


def html_report(report: VerifyReport) -> str:
    """Return the report as HTML; every name in it is escaped."""
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            title=title(report),
            subtitle=subtitle(report),
            verdict=report.verdict,
            verdict_text=verdict_text(report),
            tiles=_tiles(lines(report)),
            lines=lines(report),
            several_models=len({line.model for line in lines(report) if line.model}) > 1,
            parity_text=parity_text(report),
            parity=agreements(report),
            parity_left_out=max(0, len(report.parity) - PARITY_ROWS),
            gates=gates(report),
            components=components(report),
            symbols=symbols(report),
            timings=timings(report),
            facts=facts(report),
            total_chart=total_chart(report),
            component_chart=component_chart(report),
            memory_chart=memory_chart(report),
            load_chart=load_chart(report),
            latency_pictures=latency_pictures(report),
            parity_chart=parity_chart(report),
        )
    )


def _tiles(shown: tuple[Line, ...]) -> tuple[Line, ...]:
    """Choose the figures for the head of the page: judged measures first, each measure once."""
    compared = [line for line in shown if line.ratio_value is not None]
    judged = sorted(compared, key=lambda line: line.verdict is Verdict.NOT_JUDGED)
    once: dict[str, Line] = {}
    for line in judged:
        kept = once.setdefault(line.measure, line)
        if (line.ratio_value or 0) > (kept.ratio_value or 0):
            once[line.measure] = line
    return tuple(once.values())[:TILES]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("ortrim", "data/report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(counted=counted, share=share_text)
    environment.globals.update(symbol=SYMBOLS)
    return environment
