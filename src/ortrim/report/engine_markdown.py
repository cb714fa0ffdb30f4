"""A comparison of engines as Markdown: the table that people publish by hand."""

from collections.abc import Iterator, Mapping

from ortrim.core.engine_comparison import ComparedCase, EngineComparison
from ortrim.core.measurements import Verdict
from ortrim.report.engine_content import (
    CANNOT_RUN,
    HEADINGS,
    case_text,
    cells_of,
    engine_text,
    failure_text,
    machine_text,
    notes_of,
    titles_of,
)
from ortrim.report.markdown_text import escaped, table

NUMBERS = range(1, len(HEADINGS))


def engine_markdown(comparison: EngineComparison) -> str:
    """Return the page: how it was measured, the engines, and a table for each case."""
    engines = table(("engine", "version", "used as", "native libraries"), _engines(comparison), right=(3,))
    notes = "\n".join(f"- {escaped(note)}" for note in notes_of(comparison))
    head = f"# {escaped(comparison.name)} in several engines\n\n{escaped(machine_text(comparison))}"
    about = f"Recorded {escaped(comparison.recorded_at)} by ortrim {escaped(comparison.ortrim_version)}."
    sections = (part for case in comparison.cases for part in _case(case, comparison))
    return "\n\n".join((f"{head}\n{about}", notes, engines, *sections)) + "\n"


def _engines(comparison: EngineComparison) -> Iterator[tuple[str, ...]]:
    return (tuple(map(escaped, engine_text(engine))) for engine in comparison.engines)


def _case(case: ComparedCase, comparison: EngineComparison) -> Iterator[str]:
    titles = titles_of(comparison)
    yield f"## {escaped(case_text(case))}"
    yield table(HEADINGS, _rows(case, titles), right=NUMBERS)
    reasons = []
    for row in case.rows:
        name = titles.get(row.engine, row.engine)
        if row.times is None:
            reasons.append(f"- {escaped(f'{name} {failure_text(row)}')}")
        elif row.times.parity.verdict is Verdict.FAIL:
            reasons.append(f"- {escaped(f'{name} has no parity: {row.times.parity.reason}')}")
    if reasons:
        yield "\n".join(reasons)


def _rows(case: ComparedCase, titles: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    for row in case.rows:
        name = escaped(titles.get(row.engine, row.engine))
        if row.times is None:
            yield (name, CANNOT_RUN, *("" for _ in HEADINGS[2:]))
        else:
            yield (name, *map(escaped, cells_of(row.times)))
