"""The files of a report, how they are read again, and reports as the summary of a step on a run's page."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ortrim.base.console import first_lines
from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import from_json, to_data, to_json
from ortrim.errors import StorageError, VerifyError
from ortrim.report import content
from ortrim.report.figures import name_text
from ortrim.report.table import SYMBOLS, Columns, Table, columns, escaped
from ortrim.verify.reports import VerifyReport

JSON_NAME: Final = "report.json"
MARKDOWN_NAME: Final = "report.md"
HTML_NAME: Final = "report.html"
SHOWN_ERRORS: Final = 5
LARGEST: Final = 2**63 - 1
SCHEMA: Final = re.compile(r"ortrim-report/[0-9]{1,4}")
OUTDATED: Final = "report-outdated"
MISPLACED: Final = "report-misplaced"


def step_summary(reports: Sequence[VerifyReport]) -> str:
    """Return reports as Markdown for a step's summary; empty without any. No name in it can become markup."""
    return "".join(f"{section}\n\n" for report in reports for section in _sections(report))


def _sections(report: VerifyReport) -> Iterator[str]:
    yield f"## {SYMBOLS[report.verdict]} {escaped(content.title(report))}"
    yield escaped(content.verdict_text(report))
    names, figures = ("", "measure", "model", "device"), ("ours", "baseline", "ratio", "budget")
    headings: Columns = (*columns("text", *names), *columns("number", *figures))
    rows = [
        (SYMBOLS[each.verdict], *(getattr(each, name) for name in (*names[1:], *figures)))
        for each in content.all_lines(report)
    ]
    yield Table(columns=headings, rows=rows).markdown()
    for device in report.devices:
        symbol = SYMBOLS[content.gravest(output.verdict for output in device.parity)]
        yield f"{symbol} Parity on {escaped(name_text(device.device))}: {escaped(content.parity_text(device))}."
    from ortrim.report.html import markdown_report  # noqa: PLC0415 - it imports jinja2, which nobody who reads needs

    yield f"<details><summary>The whole report</summary>\n\n{markdown_report(report)}\n</details>"


def write_reports(report: VerifyReport, folder: Path) -> None:
    """Write `report.json`, `report.md` and `report.html` into `folder`; the same report gives the same bytes.

    All three are made before the first is written.
    """
    from ortrim.report.html import html_report, markdown_report  # noqa: PLC0415 - as in `_sections`

    texts = {JSON_NAME: to_json(report), MARKDOWN_NAME: markdown_report(report), HTML_NAME: html_report(report)}
    for name, text in texts.items():
        write_atomically(folder / name, text)


def read_report(path: Path) -> VerifyReport:
    """Read a `report.json`."""
    if not path.exists():
        raise VerifyError("report-missing", "there is no report here", where=str(path), hint="run: invoke build")
    with storage_errors(path):
        content = path.read_bytes()
    try:
        report = from_json(VerifyReport, content)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        causes = [": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in found]
        raise _outdated(path, content) or _damaged(path, first_lines(causes, SHOWN_ERRORS)) from error
    if _holds_absurd_number(to_data(report)):
        raise _damaged(path, "a whole number in it needs more than 64 bits")
    return report


def report_of(folder: Path) -> VerifyReport:
    """Return the report in the folder of a build, `<name>/<plan>/<target>`.

    Raises as `read_report` does, and `VerifyError` (`report-misplaced`) for that of another build.
    """
    report = read_report(folder / JSON_NAME)
    own = (report.name, report.plan_digest[:12], report.target)
    if own != folder.absolute().parts[-3:]:
        what, why = "this is the report of another build", f"it says {'/'.join(own)}"
        raise VerifyError(MISPLACED, what, where=str(folder / JSON_NAME), why=why, hint="run: invoke verify")
    return report


def _outdated(path: Path, content: bytes) -> VerifyError | None:
    """Return the diagnostic of a report that is whole and in another version's form, None for any other file."""
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    schema = document.get("schema") if isinstance(document, dict) else None
    own = VerifyReport.schema
    if not isinstance(schema, str) or schema == own or not SCHEMA.fullmatch(schema):
        return None
    what = "another version of ortrim wrote this report"
    why = f"its format is {schema}; this version reads {own}"
    return VerifyError(OUTDATED, what, where=str(path), why=why, hint="run: invoke verify")


def _damaged(path: Path, why: str) -> StorageError:
    what = "not a report that this version of ortrim can read"
    hint = "it is damaged; run invoke verify again"
    return StorageError("report-damaged", what, where=str(path), why=why, hint=hint)


def _holds_absurd_number(data: Any) -> bool:
    """Whether a whole number is too large for anything that is measured, and for arithmetic with floats."""
    if isinstance(data, dict | list):
        return any(_holds_absurd_number(each) for each in (data.values() if isinstance(data, dict) else data))
    return isinstance(data, int) and abs(data) > LARGEST
