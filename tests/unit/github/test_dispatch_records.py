"""Records of dispatches: read back as they were written, or refused."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.base import files
from ortrim.errors import StorageError
from ortrim.github.client import Run
from ortrim.github.remote_build import FOLDER, DispatchRecord, asked_by, jobs_of, keep, records_in, request_of
from ortrim.planning.request import Request
from refusing import refused
from sample_plans import sample_plan

REQUEST = Request(spec=Path("a b.toml"), target="linux", profile="upstream", devices=("host",), trace=True, jobs=3)
RECORD = DispatchRecord(
    site="github.com/octo/ort",
    workflow="build.yml",
    ref="main",
    correlation_id="00112233aabbccdd",
    asked=asked_by(REQUEST),
    jobs=jobs_of(sample_plan()),
)


def file_in(output: Path, name: str = "one.json", spec: str = "sample") -> Path:
    return output / spec / "0123456789ab" / FOLDER / name


def test_a_record_is_read_back(tmp_path: Path) -> None:
    """With its run once that is known; what is asked for means the same from another folder."""
    kept = keep(RECORD, file_in(tmp_path))
    run = Run(id=7, status="queued", conclusion=None, html_url="", display_title="build x [00112233aabbccdd]")
    assert kept.marks(run)
    assert not kept.marks(replace(run, display_title="build 00112233aabbccdd"))
    kept.with_run(run)
    (found,) = records_in(tmp_path)
    assert found.record == replace(RECORD, run=7)
    assert found.output == tmp_path
    request = request_of(found.record.asked, tmp_path)
    there = replace(REQUEST, elsewhere=True, on_macs=True, jobs=None)
    assert request == replace(there, spec=REQUEST.spec.absolute(), output=tmp_path)
    found.forget()
    found.forget()
    assert records_in(tmp_path) == ()


def test_a_record_that_another_program_forgets_meanwhile_is_none(tmp_path: Path) -> None:
    """It was there when the folder was listed."""
    kept = keep(RECORD, file_in(tmp_path))
    file_in(tmp_path, "gone.json").symlink_to(tmp_path / "nowhere")
    assert records_in(tmp_path) == (kept,)


def test_the_newest_run_comes_first(tmp_path: Path) -> None:
    """Those of one buildspec, or of all."""
    for number, spec in ((3, "sample"), (9, "other"), (5, "sample"), (None, "sample")):
        keep(replace(RECORD, run=number), file_in(tmp_path, f"{number}.json", spec))
    assert [kept.record.run for kept in records_in(tmp_path, "sample")] == [5, 3, None]
    assert [kept.record.run for kept in records_in(tmp_path)] == [9, 5, 3, None]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b'{"schema": "ortrim-dispatch/2"}', b"[" * 100_000, b" " * (2 << 20)]
)
def test_what_is_no_record_is_refused(tmp_path: Path, content: bytes) -> None:
    file = file_in(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    error = refused(StorageError, records_in, tmp_path)
    assert error.code == "record-damaged"
    assert error.where == str(file)


def test_a_full_disk_leaves_the_old_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or none, and no half of one."""

    def full(*_: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    kept = keep(RECORD, file_in(tmp_path))
    monkeypatch.setattr(files, "_write", full)
    assert (
        refused(StorageError, kept.with_run, Run(id=7, status=None, conclusion=None, html_url="")).code == "disk-full"
    )
    assert [found.record for found in records_in(tmp_path)] == [RECORD]
    assert [path.name for path in kept.file.parent.iterdir()] == ["one.json"]
