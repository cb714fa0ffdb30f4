"""Builds are accepted, and compared with what was."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.errors import ExitCode, StorageError, UsageError
from ortrim.pipeline import history as acceptance
from ortrim.report.history import NAME, Allowed, Record, append, entry_of
from refusing import refused
from sample_builds import sample_entry
from sample_reports import recorded_report


@pytest.fixture
def output(tmp_path: Path) -> Path:
    append(tmp_path / "artifacts" / NAME, Record(build=sample_entry()))
    return tmp_path / "artifacts"


def test_a_regression_ends_with_its_own_code_and_the_numbers(output: Path) -> None:
    acceptance.accept_builds(output, None, None, "")
    append(output / NAME, Record(build=sample_entry(file_bytes=2_000_000)))
    failure = acceptance.regression_of(acceptance.check_builds(output, "silero-vad", None, Allowed()))
    assert failure is not None
    assert (failure.exit_code, failure.code) == (ExitCode.REGRESSION, "regression")
    assert "library: 2.00 MB (+17.4 %), was 1.70 MB; 1 % more is allowed" in failure.why
    assert acceptance.regression_of(acceptance.check_builds(output, None, None, Allowed(size=0.2))) is None


def test_without_an_accepted_build_nothing_fails(output: Path) -> None:
    found = acceptance.check_builds(output, None, None, Allowed())
    assert found.checks == ()
    assert [entry.target for entry in found.unaccepted] == ["linux-x64"]
    assert acceptance.regression_of(found) is None


@pytest.mark.parametrize("spec", ["unheard-of", None])
def test_no_build_is_an_error(output: Path, spec: str | None) -> None:
    for attempt in (
        lambda: acceptance.accept_builds(output, spec, "ios-arm64", ""),
        lambda: acceptance.check_builds(output, spec, "ios-arm64", Allowed()),
    ):
        error = refused(UsageError, attempt)
        assert error.code == "no-such-build"
        assert "silero-vad linux-x64" in error.hint


def test_what_is_accepted_can_go_into_a_repository(output: Path, tmp_path: Path) -> None:
    """A machine without a past reads it from there; where bytes are is not in it."""
    accepted = acceptance.accept_builds(output, None, None, "release 1")
    file = tmp_path / "kept" / "accepted.json"
    acceptance.write_accepted(output, accepted, file)
    (one,) = acceptance.read_accepted(file)
    assert (one.note, one.entry.file_bytes, one.entry.components) == ("release 1", 1_702_856, ())
    fresh = tmp_path / "fresh"
    append(fresh / NAME, Record(build=sample_entry(file_bytes=1_750_000)))
    (found,) = acceptance.check_builds(fresh, None, None, Allowed(), file).checks
    assert [line.measure for line in found.regressions] == ["library"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"\xff\xfe",
        b'{"schema": "ortrim-accepted/9", "builds": []}',
        b'{"builds": [{"entry": 1}]}',
        b"[" * 5000,
    ],
)
def test_a_damaged_file_is_a_diagnostic(output: Path, tmp_path: Path, content: bytes) -> None:
    """Truncated, of a later version, of another form, or nested beyond all measure."""
    file = tmp_path / "accepted.json"
    file.write_bytes(content)
    assert (
        refused(StorageError, acceptance.check_builds, output, None, None, Allowed(), file).code == "accepted-damaged"
    )
    assert file.read_bytes() == content


def test_a_missing_file_is_a_diagnostic(output: Path, tmp_path: Path) -> None:
    error = refused(StorageError, acceptance.check_builds, output, None, None, Allowed(), tmp_path / "accepted.json")
    assert error.code == "accepted-missing"


def test_an_empty_file_of_builds_accepts_nothing(output: Path, tmp_path: Path) -> None:
    file = tmp_path / "accepted.json"
    file.write_text(json.dumps({"schema": "ortrim-accepted/1", "builds": []}))
    assert len(acceptance.check_builds(output, None, None, Allowed(), file).unaccepted) == 1


def test_a_workflow_compares_with_the_file_beside_the_buildspec(tmp_path: Path) -> None:
    """Sizes and memory, and no times: no two of its machines are the same. Without the file nothing is compared."""
    report = recorded_report()
    spec = tmp_path / "demo.toml"
    assert acceptance.check_reports(spec, (report,)).checks == ()
    output = tmp_path / "artifacts"
    append(output / NAME, Record(build=entry_of(report, "2026-11-21T12:00:00+00:00")))
    acceptance.write_accepted(output, acceptance.accept_builds(output, None, None, ""), tmp_path / "demo.accepted.json")
    assert acceptance.regression_of(acceptance.check_reports(spec, (report,))) is None
    (device,) = report.devices
    slow = tuple(replace(run, load_ms=replace(run.load_ms, p50=99 * run.load_ms.p50)) for run in device.runs)
    worse = replace(report, package_bytes=2 * report.package_bytes, devices=(replace(device, runs=slow),))
    (found,) = acceptance.check_reports(spec, (worse,)).checks
    assert [line.measure for line in found.regressions] == ["package"]
