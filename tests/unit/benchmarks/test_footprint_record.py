"""The record: what is kept, what counts as measured, files that are not a record."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from footprint.record import Record, read_record, write_record

from footprint_samples import MACHINE, library, record, turn
from ortrim.base.json import to_json
from ortrim.errors import ExitCode, StorageError, UsageError


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """Nothing is lost, and nothing else is left beside it."""
    write_record(tmp_path / "new" / "r.json", record(turn(), turn(2)))
    assert read_record(tmp_path / "new" / "r.json", MACHINE) == record(turn(), turn(2))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["r.json"]


def test_without_a_file_the_record_is_empty_and_none_is_made(tmp_path: Path) -> None:
    """Looking is not measuring."""
    assert read_record(tmp_path / "r.json", MACHINE) == Record(machine=MACHINE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"schema": "ortrim-footprint/2"}', b'{"schema": "ortrim-build-time/1"}', b"\xff\xfe"],
)
def test_a_damaged_record_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    """Hours of measurements are not to be overwritten."""
    file = tmp_path / "r.json"
    file.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        read_record(file, MACHINE)
    assert (caught.value.code, caught.value.exit_code) == ("measurements-damaged", ExitCode.STORAGE)
    assert file.read_bytes() == content


def test_half_a_record_is_refused(tmp_path: Path) -> None:
    """Somebody else cut it short: it is written whole or not at all."""
    file = tmp_path / "r.json"
    write_record(file, record(turn()))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(StorageError, match="not a record"):
        read_record(file, MACHINE)


def test_measurements_of_another_machine_are_refused(tmp_path: Path) -> None:
    """A ratio between two machines says nothing; a busier one is the same machine."""
    write_record(tmp_path / "r.json", record())
    assert read_record(tmp_path / "r.json", replace(MACHINE, load_average=9.0)).machine == MACHINE
    with pytest.raises(UsageError) as caught:
        read_record(tmp_path / "r.json", replace(MACHINE, cpu="Another"))
    assert caught.value.code == "other-machine"


def test_the_latest_rounds_are_those_of_the_newest_libraries() -> None:
    """In the order of their numbers; what older ones took stays in the file."""
    old, first, second = turn(key="old", started="2026-01-01"), turn(1, started="2026-01-03"), turn(2)
    found = record(old, second, first).latest()
    assert found == ((first, second),)
    assert len(record(old, second, first).rounds) == 3


def test_libraries_take_the_place_of_a_specs_older_ones() -> None:
    """And models that of older ones; those of other specs stay."""
    other = replace(library("balanced", 5), spec="other")
    before = replace(record(kind=(False, False)), libraries=(other,))
    kind = replace(before.kinds[0], layout=True)
    changed = before.with_spec("demo", (library("balanced", 7),), (kind,))
    assert [(each.spec, each.file_bytes) for each in changed.libraries] == [("other", 5), ("demo", 7)]
    assert changed.kinds == (kind,)
    assert changed.with_spec("other", (), ()).kinds == (kind,)


def test_a_record_from_before_models_were_told_apart_is_read(tmp_path: Path) -> None:
    """Its models are of no known kind, and no library of it is packed."""
    document = json.loads(to_json(record(turn())))
    del document["kinds"]
    for each in document["libraries"]:
        del each["packed"]
    (tmp_path / "footprint.json").write_text(json.dumps(document))
    assert read_record(tmp_path / "footprint.json", MACHINE) == record(turn())
