"""Benches are in the same store as builds, whatever version of ortrim began it."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bench_samples import sample_plan, sample_report, samples_of
from ortrim.bench.scores import report_of
from ortrim.errors import StorageError
from ortrim.history.rows import BenchEntry, entries_of
from ortrim.history.store import NAME, STEPS, benches, builds, record, record_all
from sample_builds import sample_entry


@pytest.fixture(name="entries")
def fixture_entries() -> tuple[BenchEntry, ...]:
    """Return the entries of a sweep over four points."""
    return entries_of(sample_report(threads_is_2=0.5))


def begun_by_the_first_version(path: Path) -> None:
    """Make a store as it was before there were benches, with a build in it."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in STEPS[0]:
            connection.execute(statement)
        connection.execute("PRAGMA user_version = 1")
        connection.execute(
            "INSERT INTO builds VALUES (1, '2026-11-21T12:00:00+00:00', 'old', 'linux-x64', 'size', '1.21.0', '0.1.0', "
            "'d', 'pass', 4, 3, 2, 1, 0.5)"
        )
        connection.commit()


def test_what_is_kept_of_a_bench(entries: tuple[BenchEntry, ...]) -> None:
    """An entry for each point, with the figures of all cases; the recommended one is marked."""
    assert [(each.point, each.recommended) for each in entries] == [
        ("default", 0), ("arena=false", 0), ("threads=2", 1), ("threads=2 arena=false", 0),
    ]  # fmt: skip
    entry = entries[0]
    assert (entry.model, entry.model_sha256, entry.training_run, entry.library) == ("net", "2" * 64, "run-7", "built")
    assert (entry.cpu, entry.cores, entry.rounds, entry.deadline_ms) == ("A processor", 4, 3, 10.0)
    assert '"threads":1' in entry.settings
    figures = {(each.case, each.measure): (each.value, each.unit) for each in entry.measures}
    assert figures["one", "p50"] == (1.25, "ms")
    assert figures["two", "missed deadlines"] == (3, "runs")
    assert figures["one", "peak memory"] == (10_000_000, "bytes")
    assert len(figures) == 2 * 13


def test_without_a_deadline_none_is_missed() -> None:
    """There is no such figure then, and the deadline is 0; pinned cores are those that count."""
    plan = sample_plan(deadline_ms=None)
    plan = replace(plan, machine=replace(plan.machine, pinned_cores=(3,)))
    (entry,) = entries_of(report_of(plan, samples_of(plan, {}), "latency", "j"))
    assert (entry.deadline_ms, entry.cores, entry.recommended) == (0.0, 1, 0)
    assert "missed deadlines" not in {each.measure for each in entry.measures}


def test_what_is_recorded_comes_back(tmp_path: Path, entries: tuple[BenchEntry, ...]) -> None:
    """All or those of a spec and a target, beside the builds."""
    path = tmp_path / "artifacts" / NAME
    assert record_all(path, entries) is None
    record(path, sample_entry())
    assert benches(path) == entries
    assert benches(path, spec="demo", target="linux-x64") == entries
    assert benches(path, spec="demo", target="linux-arm64") == ()
    assert builds(path) == (sample_entry(),)


def test_a_store_without_benches_gets_their_tables(tmp_path: Path, entries: tuple[BenchEntry, ...]) -> None:
    """Its builds stay."""
    path = tmp_path / NAME
    begun_by_the_first_version(path)
    assert benches(path) == ()
    record_all(path, entries)
    assert benches(path) == entries
    assert [each.spec for each in builds(path)] == ["old"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_all_of_a_bench_is_written_or_nothing(tmp_path: Path, entries: tuple[BenchEntry, ...]) -> None:
    """A wrong kind of value in the last entry undoes the first ones."""
    wrong = replace(entries[-1], rounds="many")  # type: ignore[arg-type]
    with pytest.raises(StorageError):
        record_all(tmp_path / NAME, (*entries[:-1], wrong))
    assert benches(tmp_path / NAME) == ()


def test_a_damaged_store_is_set_aside(tmp_path: Path, entries: tuple[BenchEntry, ...]) -> None:
    """As builds do it."""
    (tmp_path / NAME).write_bytes(b"no database" * 100)
    with pytest.raises(StorageError) as caught:
        benches(tmp_path / NAME)
    assert caught.value.code == "history-damaged"
    assert record_all(tmp_path / NAME, entries) == tmp_path / "history.damaged-1.sqlite3"
    assert benches(tmp_path / NAME) == entries
