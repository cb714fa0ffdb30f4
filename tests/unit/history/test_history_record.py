"""Builds enter the history, and nothing that hinders that hinders a build."""

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onnx_samples import relu, write
from ortrim.base.console import Console
from ortrim.errors import StorageError, UsageError
from ortrim.pipeline import building
from ortrim.pipeline.history import history_of, record_build
from ortrim.planning.request import Request
from ortrim.report.history import NAME, builds
from ortrim.report.history_pages import history_page
from refusing import refused
from sample_reports import recorded_report


def test_a_verified_build_enters_the_history(tmp_path: Path) -> None:
    warnings: list[str] = []
    record_build(recorded_report(), tmp_path / "artifacts", warnings.append)
    (entry,) = history_of(tmp_path / "artifacts", None, None)
    recorded = datetime.fromisoformat(entry.recorded_at)
    assert recorded.utcoffset() == UTC.utcoffset(None)
    assert warnings == []


def test_verification_ends_with_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "verify", lambda *_: recorded_report())
    monkeypatch.setattr(building, "target_folder", lambda *_: tmp_path / "artifacts" / "target")
    subject: Any = SimpleNamespace(target=None, result=None, delivery=SimpleNamespace(archive=Path("package.tar.gz")))
    request = Request(spec=tmp_path / "spec.toml", output=tmp_path / "artifacts", training_run="run-7")
    planned: Any = SimpleNamespace(models=SimpleNamespace(preparations=(None,)))
    building._verify(planned, subject, request, Console(stdout=io.StringIO(), environment={}))
    assert (tmp_path / "artifacts" / "target" / "report.json").is_file()
    (entry,) = builds(tmp_path / "artifacts" / NAME)
    assert entry.training_run == "run-7"


def test_a_damaged_history_is_a_warning(tmp_path: Path) -> None:
    """It is set aside, the build is in the new one, and both paths are named."""
    (tmp_path / NAME).write_bytes(b"no history")
    warnings: list[str] = []
    record_build(recorded_report(), tmp_path, warnings.append)
    (warning,) = warnings
    assert warning.startswith("history-damaged: ")
    assert str(tmp_path / "history.damaged-1.jsonl") in warning
    assert len(builds(tmp_path / NAME)) == 1


def test_a_history_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    warnings: list[str] = []
    record_build(recorded_report(), tmp_path, warnings.append)
    (warning,) = warnings
    assert warning.startswith("this build is not in the history: ")
    assert list((tmp_path / NAME).iterdir()) == []


def test_builds_are_found_by_spec_and_target(tmp_path: Path) -> None:
    report = recorded_report()
    for each in (report, replace(report, target="linux-arm64"), replace(report, name="other")):
        record_build(each, tmp_path, lambda _: None)
    assert len(history_of(tmp_path, report.name, None)) == 2
    assert [each.target for each in history_of(tmp_path, report.name, "linux-arm64")] == ["linux-arm64"]
    write(tmp_path / "m.onnx", relu())
    spec = tmp_path / "named.toml"
    spec.write_text('name = "other"\n[[models]]\nname = "m"\npath = "m.onnx"\n')
    assert [each.spec for each in history_of(tmp_path, str(spec), None)] == ["other"]
    error = refused(UsageError, history_of, tmp_path, "unheard-of", None)
    assert error.code == "no-such-build"
    assert "other linux-x64" in error.hint


def test_a_page_of_the_history(tmp_path: Path) -> None:
    assert refused(StorageError, history_of, tmp_path, None, None).code == "history-missing"
    record_build(recorded_report(), tmp_path, lambda _: None)
    assert "<svg" in history_page(history_of(tmp_path, None, None))
