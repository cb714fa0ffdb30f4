import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from ortrim.errors import Diagnostic, ExitCode
from ortrim.report.write import OUTDATED, read_report, write_reports
from ortrim.verify.reports import VerifyReport
from refusing import refused
from sample_reports import on_device

DATA = Path(__file__).parent / "data"
NAMES = ["report.html", "report.json", "report.md"]


def test_the_same_report_gives_the_same_bytes(report: VerifyReport, tmp_path: Path) -> None:
    """Two writes of one report, one of them over the other, are equal byte for byte, with nothing beside them."""
    for folder in ("a", "b", "b"):
        write_reports(report, tmp_path / folder)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == NAMES
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in NAMES)


def test_a_written_report_reads_back(report: VerifyReport, tmp_path: Path) -> None:
    """`report.json` holds everything exactly."""
    write_reports(report, tmp_path)
    assert read_report(tmp_path / "report.json") == report


def test_values_that_are_no_numbers_survive(report: VerifyReport, tmp_path: Path) -> None:
    """A difference that is not a number, or infinite, comes back as what it was."""
    broken = replace(report.devices[0].parity[0], max_absolute=math.inf, cosine=math.nan)
    write_reports(on_device(report, parity=(broken,)), tmp_path)
    json.loads((tmp_path / "report.json").read_text(), parse_constant=pytest.fail)
    found = read_report(tmp_path / "report.json").devices[0].parity[0]
    assert found.max_absolute == math.inf
    assert found.cosine is not None
    assert math.isnan(found.cosine)


def test_memory_that_nobody_could_tell_survives(report: VerifyReport, tmp_path: Path) -> None:
    """From a machine without /proc, what is resident after loading is null, and none of the forms minds."""
    (device,) = report.devices
    runs = tuple(replace(run, loaded_rss_bytes=None, inference_peak_rss_bytes=None) for run in device.runs)
    write_reports(on_device(report, runs=runs), tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["devices"][0]["runs"][0]["loaded_rss_bytes"] is None
    assert read_report(tmp_path / "report.json").devices[0].runs == runs


def test_ugly_reports_are_written(
    ugly_report: VerifyReport, empty_report: VerifyReport, side_report: VerifyReport, tmp_path: Path
) -> None:
    for name, report in (("ugly", ugly_report), ("empty", empty_report), ("side", side_report)):
        write_reports(report, tmp_path / name)
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == NAMES


def test_a_folder_that_cannot_be_made_is_a_diagnostic(report: VerifyReport, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    error = refused(Diagnostic, write_reports, report, tmp_path / "taken")
    assert (error.code, error.exit_code) == ("path-in-the-way", ExitCode.STORAGE)
    assert (tmp_path / "taken").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_missing_report_says_how_to_make_one(tmp_path: Path) -> None:
    error = refused(Diagnostic, read_report, tmp_path / "report.json")
    assert (error.code, error.exit_code) == ("report-missing", ExitCode.VERIFY)
    assert "build" in error.hint


def test_a_folder_instead_of_a_report_is_a_diagnostic(tmp_path: Path) -> None:
    error = refused(Diagnostic, read_report, tmp_path)
    assert error.exit_code == ExitCode.STORAGE
    assert str(tmp_path) in error.where


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"null", b"[]", b"\xff\xfe", b"\x7fELF", b'{"schema": "ortrim-report/1"', b"[" * 5000, b'{"name": 1}'],
)
def test_damaged_reports_are_diagnostics(tmp_path: Path, content: bytes) -> None:
    """Empty, truncated, binary, deeply nested or wrong content is named as damaged, and left as it is."""
    path = tmp_path / "report.json"
    path.write_bytes(content)
    error = refused(Diagnostic, read_report, path)
    assert (error.code, error.exit_code) == ("report-damaged", ExitCode.STORAGE)
    assert len(error.why.splitlines()) <= 6
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"ortrim-report/11"', '"ortrim-report"', "schema"),
        ('"ortrim-report/11"', "2", "schema"),
        ('"unit": "bytes"', '"unit": "furlongs"', "comparisons.0.unit"),
        ('"verdict": "pass"', '"verdict": "fine"', "comparisons.0.verdict"),
        ('"cores": 2', '"cores": "two"', "devices.0.host.cores"),
        ('"cores": 2', '"cores": 2' + "0" * 400, "64 bits"),
        ('"parity": [', '"parity": [7,', "devices.0.parity.0"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(tmp_path: Path, old: str, new: str, place: str) -> None:
    path = tmp_path / "report.json"
    path.write_text((DATA / "report.json").read_text().replace(old, new, 1))
    error = refused(Diagnostic, read_report, path)
    assert error.code == "report-damaged"
    assert place in error.why


def test_who_changes_the_form_changes_its_number(report: VerifyReport) -> None:
    """A report written before the keys changed is of another version; under the same number it would be damage."""
    form = TypeAdapter(VerifyReport).json_schema()
    keys = {name: sorted(part.get("properties", part.get("enum", ()))) for name, part in form["$defs"].items()}
    recorded = json.loads((DATA / "form.json").read_text())
    assert {"schema": report.schema, "keys": sorted(form["properties"]), "of": keys} == recorded, (
        "give `VerifyReport.schema` the next number, then write the new form into form.json"
    )


@pytest.mark.parametrize("version", ["1", "2", "4", "5", "9999"])
def test_a_report_of_another_version_is_not_called_damaged(tmp_path: Path, version: str) -> None:
    path = tmp_path / "report.json"
    text = (DATA / "report-1.json").read_text().replace("ortrim-report/1", f"ortrim-report/{version}")
    path.write_text(text)
    error = refused(Diagnostic, read_report, path)
    assert (error.code, error.exit_code) == (OUTDATED, ExitCode.VERIFY)
    assert error.why == f"its format is ortrim-report/{version}; this version reads ortrim-report/11"
    assert error.hint == "run: invoke verify"
    assert path.read_text() == text


@pytest.mark.parametrize(
    "schema", ["ortrim-report/", "ortrim-report/99999", "ortrim-report/11\n", "report/1", "", [], 1]
)
def test_a_form_that_never_was_is_damage(tmp_path: Path, schema: object) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"schema": schema}))
    assert refused(Diagnostic, read_report, path).code == "report-damaged"


@given(cut=st.integers(min_value=0, max_value=30_000), noise=st.binary(max_size=8))
def test_no_damage_is_a_traceback(tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes) -> None:
    """A report cut anywhere, with anything after it, is a diagnostic."""
    path = tmp_path_factory.mktemp("damaged") / "report.json"
    path.write_bytes((DATA / "report.json").read_bytes()[:cut] + noise)
    with pytest.raises(Diagnostic):
        read_report(path)
