"""The record: what is kept, what counts as measured, files that are not a record."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from build_time.record import Machine, Measurement, Record, read_record, write_record

from ortrim.errors import StorageError, UsageError

Measure = Callable[..., Measurement]


def test_a_record_comes_back_as_it_was_written(tmp_path: Path, machine: Machine, measured: Measure) -> None:
    """Nothing is lost, units, cache and library included."""
    record = Record(machine=machine).with_measurement(measured()).with_measurement(measured(case="x", library=None))
    write_record(tmp_path / "new" / "r.json", record)
    assert read_record(tmp_path / "new" / "r.json", machine) == record


def test_without_a_file_the_record_is_empty_and_none_is_made(tmp_path: Path, machine: Machine) -> None:
    """Looking is not measuring."""
    assert read_record(tmp_path / "r.json", machine) == Record(machine=machine)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'{"schema": "ortrim-build-time/2"}', b"\xff\xfe", b'{"schema": 1}',
        b'{"machine": {"cores": "many"}}', b"1e999",
    ],
)  # fmt: skip
def test_a_damaged_record_is_refused_and_left_alone(tmp_path: Path, machine: Machine, content: bytes) -> None:
    """Hours of measurements are not to be overwritten."""
    file = tmp_path / "r.json"
    file.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        read_record(file, machine)
    assert caught.value.code == "measurements-damaged"
    assert str(file) in caught.value.where
    assert file.read_bytes() == content


def test_a_truncated_record_is_refused(tmp_path: Path, machine: Machine, measured: Measure) -> None:
    """Half a file is no file."""
    file = tmp_path / "r.json"
    write_record(file, Record(machine=machine, measurements=(measured(),)))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(StorageError, match="not a record"):
        read_record(file, machine)


def test_a_folder_in_the_records_place_is_a_diagnostic(tmp_path: Path, machine: Machine) -> None:
    """And no traceback."""
    (tmp_path / "r.json").mkdir()
    with pytest.raises(StorageError) as caught:
        read_record(tmp_path / "r.json", machine)
    assert caught.value.code == "path-in-the-way"


@pytest.mark.parametrize("change", [{"cores": 8}, {"cpu": "Another"}, {"memory_bytes": 1}, {"system": "Linux 7"}])
def test_measurements_of_another_machine_are_refused(
    tmp_path: Path, machine: Machine, change: dict[str, object]
) -> None:
    """A ratio between two machines says nothing."""
    write_record(tmp_path / "r.json", Record(machine=machine))
    with pytest.raises(UsageError) as caught:
        read_record(tmp_path / "r.json", Machine(**{**vars(machine), **change}))
    assert caught.value.code == "other-machine"
    assert "--output" in caught.value.hint


def test_a_busier_machine_is_the_same_machine(tmp_path: Path, machine: Machine) -> None:
    """Its load is a fact of the day."""
    write_record(tmp_path / "r.json", Record(machine=machine))
    assert read_record(tmp_path / "r.json", replace(machine, load_average=9.0)).machine == machine


def test_a_measurement_takes_the_place_of_one_of_the_same(machine: Machine, measured: Measure) -> None:
    """Another round or another key is another measurement."""
    record = Record(machine=machine)
    for new in (measured(), measured(round=2), measured(key="other"), measured(wall_seconds=1.0)):
        record = record.with_measurement(new)
    assert [(each.round, each.key, each.cost.wall_seconds) for each in record.measurements] == [
        (2, "k", 150.0), (1, "other", 150.0), (1, "k", 1.0),
    ]  # fmt: skip


def test_measurements_are_found_by_spec_case_and_key(machine: Machine, measured: Measure) -> None:
    """In the order of their rounds."""
    record = Record(machine=machine)
    for new in (measured(round=2), measured(), measured(case="upstream"), measured(spec="x"), measured(key="o")):
        record = record.with_measurement(new)
    assert [each.round for each in record.of("demo", "ortrim", "k")] == [1, 2]
    assert len(record.of("demo", "ortrim")) == 3
    assert record.of("demo", "nothing") == ()


def test_the_latest_are_all_rounds_of_the_newest_key(machine: Machine, measured: Measure) -> None:
    """Old commits stay in the record and out of the medians."""
    record = Record(machine=machine)
    for number, (key, day) in enumerate((("old", "01"), ("old", "02"), ("new", "04"), ("new", "03"))):
        record = record.with_measurement(measured(key=key, round=number, started=f"2026-01-{day}T00:00:00"))
    assert [each.round for each in record.latest("demo", "ortrim")] == [2, 3]
    assert record.latest("demo", "nothing") == ()


@pytest.mark.parametrize(
    ("busy", "others", "disturbed"),
    [(0.0, 0.0, False), (0.5, 7.5, False), (0.51, 0.0, True), (0.0, 7.6, True), (2.0, 300.0, True)],
)
def test_a_machine_that_was_not_at_rest_marks_a_measurement(
    measured: Measure,
    busy: float,
    others: float,
    disturbed: bool,  # noqa: FBT001 - a column
) -> None:
    """Before it, half a processor is the limit; meanwhile, a twentieth of its 150 seconds."""
    assert measured(busy_processors=busy, other_cpu_seconds=others).disturbed is disturbed


def test_a_record_is_whole_or_not_there(tmp_path: Path, machine: Machine, measured: Measure) -> None:
    """Nothing but the record is left beside it."""
    write_record(tmp_path / "r.json", Record(machine=machine, measurements=(measured(),)))
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
