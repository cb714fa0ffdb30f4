"""The record of new versions, which one job leaves for another."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.base.json import from_json, to_json
from ortrim.errors import BuildError, DiagnosticGroup, ExitCode, StorageError
from ortrim.pin_updates.new_versions import LARGEST, RECORD, VersionsUpdate, read_update, refused_by, write_update
from ortrim.pin_updates.report import Refused
from refusing import refused

REFUSED = Refused(version="1.24.0", reference="no-converter", what="there is no wheel", why="")


def test_a_record_reads_back(tmp_path: Path) -> None:
    update = VersionsUpdate(last="1.21.0", pinned=("1.22.0", "1.23.2"), refused=(REFUSED,), unbuilt=(REFUSED,))
    assert write_update(update, tmp_path / "a" / "b") == tmp_path / "a" / "b" / RECORD
    assert read_update(tmp_path / "a" / "b") == update


@given(st.text(), st.text(), st.lists(st.from_regex(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}", fullmatch=True)))
def test_any_words_read_back(what: str, why: str, versions: list[str]) -> None:
    refused = tuple(Refused(version=each, reference="a-b", what=what, why=why) for each in versions)
    update = VersionsUpdate(last="1.21.0", pinned=tuple(versions), refused=refused)
    assert from_json(VersionsUpdate, to_json(update)) == update


def test_the_newest_is_the_last_when_nothing_came() -> None:
    assert VersionsUpdate(last="1.21.0").newest == "1.21.0"
    assert VersionsUpdate(last="1.21.0", pinned=("1.22.0", "1.23.2")).newest == "1.23.2"


def test_no_record_is_none(tmp_path: Path) -> None:
    """Nobody asked for new versions."""
    assert read_update(tmp_path) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"last": 1}', b'{"schema": "ortrim-versions/9", "last": ""}', b"\xff", b"[" * 99_999],
)
def test_a_damaged_record_is_reported(tmp_path: Path, content: bytes) -> None:
    """It is not taken for one that says nothing."""
    (tmp_path / RECORD).write_bytes(content)
    error = refused(StorageError, read_update, tmp_path)
    assert (error.code, error.exit_code) == ("record-damaged", ExitCode.STORAGE)


def test_a_record_without_end_is_not_read(tmp_path: Path) -> None:
    """No more than a record can be is taken into memory."""
    (tmp_path / RECORD).write_bytes(b" " * (2 * LARGEST) + b'{"last": "1.21.0"}')
    with pytest.raises(StorageError):
        read_update(tmp_path)


def test_a_diagnostic_becomes_a_refusal() -> None:
    """By its last line, where tools say why; of several, the first."""
    error = BuildError("build-failed", "stopped", why="one\ntwo\n")
    wanted = Refused(version="1.24.0", reference="build-failed", what="stopped", why="two")
    assert refused_by("1.24.0", error) == wanted
    assert refused_by("1.24.0", DiagnosticGroup((error, BuildError("other", "x")))) == wanted
