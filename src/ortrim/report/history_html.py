"""The page about how builds and benches changed over time."""

from collections.abc import Sequence
from typing import Any, Final

from ortrim.console import counted
from ortrim.core.bench_history import BenchEntry
from ortrim.core.build_history import BuildEntry
from ortrim.report.bench_plots import bench_kinds
from ortrim.report.families import FAMILIES, STYLES, family
from ortrim.report.history_charts import LINE_STYLES, build_stamps, measure_lines, size_columns
from ortrim.report.history_content import Series, curves, history_lines, series
from ortrim.report.names import name_text
from ortrim.report.pages import rendered

MEASURES: Final = (
    ("peak memory", "Peak resident memory"),
    ("load", "Time to load a model"),
    ("p50", "Latency, median of the slowest case"),
)
LINES: Final = 200
"""How many builds, the last ones, the table has."""


def history_page(entries: Sequence[BuildEntry], benches: Sequence[BenchEntry] = ()) -> str:
    """Return the page about builds and benches, which are in order.

    Builds have plots for each spec, target and profile, benches for each spec, target, model and library.
    """
    found = series(entries)
    told = {family(part.component) for entry in entries for part in entry.components}
    return rendered(
        "history.html.j2",
        title="Builds over time",
        subtitle=_subtitle(len(entries), len(found), len({each.recorded_at for each in benches})),
        legend=[(STYLES[name], name) for name in FAMILIES if name in told],
        kinds=[_kind(name, each) for name, each in found.items()],
        benches=bench_kinds(benches),
    )


def _subtitle(builds: int, kinds: int, benches: int) -> str:
    words = f"{counted(builds, 'build')} of {counted(kinds, 'kind')}"
    return f"{words}, and {benches:,} {'bench' if benches == 1 else 'benches'}" if benches else words


def _kind(name: tuple[str, str, str], entries: Series) -> dict[str, Any]:
    lines = history_lines(entries)
    return {
        "name": " · ".join(map(name_text, name)),
        "columns": size_columns(entries),
        "measures": [each for each in (_measure(entries, *measure) for measure in MEASURES) if each["picture"]],
        "lines": list(reversed(lines))[:LINES],
        "left_out": max(0, len(lines) - LINES),
    }


def _measure(entries: Series, measure: str, heading: str) -> dict[str, Any]:
    found = curves(entries, measure)
    return {
        "heading": heading,
        "picture": measure_lines(build_stamps(entries), found, f"{heading}, over builds"),
        "curves": [(style, curve.label) for style, curve in zip(LINE_STYLES, found, strict=False)],
        "left_out": max(0, len(found) - len(LINE_STYLES)),
    }
