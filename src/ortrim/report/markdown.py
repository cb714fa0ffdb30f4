"""The report as GitHub-flavoured Markdown, for `report.md` and for the step summary."""

import re
from collections.abc import Iterable, Sequence

from ortrim.core.measurements import Verdict, VerifyReport
from ortrim.report.content import SYMBOLS, Line, agreements, components, facts, gates, lines, symbols, timings
from ortrim.report.summary import parity_text, subtitle, title, verdict_text


def markdown_report(report: VerifyReport) -> str:
    """Return the report as Markdown that ends with a newline; no name in it can become markup."""
    sections = (
        f"# {escaped(title(report))}",
        f"**{escaped(verdict_text(report))}**",
        escaped(subtitle(report)),
        "## Against the budget",
        _comparisons(report),
        "## Parity",
        escaped(parity_text(report)[:1].upper() + parity_text(report)[1:]) + ".",
        _parity(report),
        "## Gates",
        _table(("gate", "verdict", "detail"), ((escaped(n), _verdict(v), escaped(d)) for n, v, d in gates(report))),
        "## Size by component",
        _sizes(report),
        "## Latency",
        _latency(report),
        "## Everything else",
        _table(("what", "value"), ((label, escaped(value)) for label, value in facts(report))),
    )
    return "\n\n".join(section for section in sections if section) + "\n"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, HTML, mention, link or table cell comes of it."""
    flat = " ".join(text.split())
    shown = re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", flat)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace("@", "&#64;").replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


def _comparisons(report: VerifyReport) -> str:
    several = len({line.model for line in lines(report) if line.model}) > 1
    headings = ("measure", *(("model",) if several else ()), "ours", "baseline", "ratio", "budget", "verdict")
    rows = (_cells(line, several=several) for line in lines(report))
    return _table(headings, rows, right=range(len(headings) - 5, len(headings) - 1))


def _cells(line: Line, *, several: bool) -> tuple[str, ...]:
    names = (line.measure, line.model) if several else (line.measure,)
    return (*map(escaped, names), line.ours, line.baseline, line.ratio, line.budget, _verdict(line.verdict))


def _parity(report: VerifyReport) -> str:
    headings = ("model", "case", "output", "type", "absolute", "relative", "cosine", "arg-max", "verdict")
    rows = (
        (
            *map(escaped, (row.model, row.case, row.output, row.kind)),
            *(row.absolute, row.relative, row.cosine, row.argmax),
            " ".join(filter(None, (_verdict(row.verdict), escaped(row.reason)))),
        )
        for row in agreements(report)
    )
    return _table(headings, rows, right=range(4, 8))


def _sizes(report: VerifyReport) -> str:
    parts = ((escaped(part.name), part.size, part.share_text) for part in components(report))
    largest = ((escaped(part.name), escaped(part.component), part.size, part.share_text) for part in symbols(report))
    table = _table(("symbol", "component", "size", "share"), largest, right=range(2, 4))
    folded = f"<details><summary>Largest symbols</summary>\n\n{table}\n\n</details>" if table else ""
    return "\n\n".join(filter(None, (_table(("component", "size", "share"), parts, right=range(1, 3)), folded)))


def _latency(report: VerifyReport) -> str:
    headings = ("model", "case", "library", "runs", "first run", "p50", "p90", "p99", "input + inference + output")
    rows = (
        (
            *map(escaped, (row.model, row.case, row.library)),
            *(str(row.runs), row.first, row.p50, row.p90, row.p99, row.split),
        )
        for row in timings(report)
    )
    return _table(headings, rows, right=range(3, 9))


def _verdict(verdict: Verdict) -> str:
    return f"{SYMBOLS[verdict]} {verdict.value}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> str:
    """Write a table, or that there is none of it. `right` names the columns aligned to the right."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    if not body:
        return "None."
    aligned = set(right)
    rule = "|".join("---:" if column in aligned else "---" for column in range(len(headings)))
    return "\n".join([f"| {' | '.join(headings)} |", f"|{rule}|", *body])
