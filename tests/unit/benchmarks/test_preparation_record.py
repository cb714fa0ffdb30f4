"""The record of what steps bring: what is kept beside the rounds."""

from dataclasses import replace
from pathlib import Path

import pytest
from footprint.record import read_or_begin, write_record
from preparation.record import PreparationRecord
from preparation.subject import GIVEN, PREPARED

from footprint_samples import MACHINE, library
from ortrim.errors import ExitCode, StorageError, UsageError
from preparation_samples import both_turn, change, preparation_record

EMPTY = PreparationRecord(machine=MACHINE)


def test_a_record_with_changes_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """A difference that is not a number too."""
    written = preparation_record(both_turn(), changes=(change(largest_difference=float("inf")),))
    write_record(tmp_path / "r.json", written)
    assert read_or_begin(tmp_path / "r.json", EMPTY) == written


def test_without_a_file_there_is_the_empty_record() -> None:
    """Of its own kind, so that changes can be put into it."""
    assert read_or_begin(Path("none.json"), EMPTY) is EMPTY


@pytest.mark.parametrize("content", [b"", b"[]", b'{"changes": [{}]}', b"\xff"])
def test_what_is_no_record_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    """An hour of measurements may be in it."""
    file = tmp_path / "r.json"
    file.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        read_or_begin(file, EMPTY)
    assert (caught.value.code, caught.value.exit_code) == ("measurements-damaged", ExitCode.STORAGE)
    assert file.read_bytes() == content


def test_changes_measured_on_another_machine_are_refused(tmp_path: Path) -> None:
    """A ratio across machines says nothing."""
    write_record(tmp_path / "r.json", preparation_record())
    with pytest.raises(UsageError, match="another machine"):
        read_or_begin(tmp_path / "r.json", replace(EMPTY, machine=replace(MACHINE, cpu="Another")))


def test_changes_take_the_place_of_a_specs_older_ones() -> None:
    """Those of other specs stay, and so do the rounds."""
    before = preparation_record(both_turn(), changes=(change(spec="other"), change(), change(model="gone")))
    after = before.with_changes("demo", (change(key="new"),)).with_round(both_turn(2))
    assert [(each.spec, each.model, each.key) for each in after.changes] == [
        ("other", "net", "k"), ("demo", "net", "new"),
    ]  # fmt: skip
    assert [each.number for each in after.rounds] == [1, 2]


def test_a_librarys_bytes_are_those_of_its_spec() -> None:
    """None where it was not measured."""
    record = preparation_record().with_spec("other", (replace(library(GIVEN, 7), spec="other"),), ())
    found = [record.library_bytes(spec, name) for spec in ("demo", "other") for name in (GIVEN, PREPARED)]
    assert found == [1_300_000, 1_200_000, 7, None]
