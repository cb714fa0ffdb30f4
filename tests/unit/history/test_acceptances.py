"""Acceptances in the store."""

import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ortrim.base.command import run
from ortrim.errors import StorageError
from ortrim.history import store as database
from ortrim.history import store as schema
from ortrim.history.rows import BuiltModel, MeasuredOn
from ortrim.history.store import NAME, STEPS, accept_latest, accepted_builds, builds, latest_builds, record
from sample_builds import sample_entry

AT = "2026-11-22T00:00:00+00:00"
ACCEPTER = """
import sys
from pathlib import Path
from ortrim.history.store import accept_latest
for number in range(5):
    accept_latest(Path(sys.argv[1]), spec="", target="", accepted_at="2026", note=sys.argv[2] + str(number))
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Return a store of three builds of two targets."""
    path = tmp_path / NAME
    for entry in (sample_entry(), sample_entry(target="linux-arm64"), sample_entry(plan_digest="b" * 64)):
        record(path, entry)
    return path


def accept(store: Path, spec: str = "", target: str = "", note: str = "") -> list[str]:
    """Accept the latest builds and return their plans."""
    found = accept_latest(store, spec=spec, target=target, accepted_at=AT, note=note)
    return [entry.plan_digest[:1] for entry in found]


def test_the_latest_build_of_each_target_is_accepted(store: Path) -> None:
    """And comes back as what was accepted last; later builds change nothing of it."""
    assert accept(store, note="release 1") == ["4", "b"]
    record(store, sample_entry(plan_digest="c" * 64))
    found = {each.entry.target: each for each in accepted_builds(store)}
    assert found["linux-x64"].entry.plan_digest == "b" * 64
    assert (found["linux-arm64"].accepted_at, found["linux-arm64"].note) == (AT, "release 1")
    assert [entry.plan_digest[:1] for entry in latest_builds(store)] == ["4", "c"]


def test_a_later_acceptance_takes_the_place_of_an_earlier_one(store: Path) -> None:
    """For that spec and target alone."""
    accept(store, note="first")
    record(store, sample_entry(plan_digest="c" * 64))
    assert accept(store, spec="silero-vad", target="linux-x64", note="second") == ["c"]
    assert {each.entry.target: each.note for each in accepted_builds(store)} == {
        "linux-arm64": "first",
        "linux-x64": "second",
    }
    assert [each.note for each in accepted_builds(store, target="linux-arm64")] == ["first"]


def test_what_is_not_there_is_not_accepted(store: Path, tmp_path: Path) -> None:
    """No build of that name, and no store at all: nothing is made."""
    assert accept(store, spec="unheard-of") == []
    assert accepted_builds(store) == ()
    with pytest.raises(StorageError) as caught:
        accept(tmp_path / "nowhere" / NAME)
    assert caught.value.code == "history-missing"
    assert not (tmp_path / "nowhere").exists()


def test_a_damaged_store_is_said_to_be_so_and_left(tmp_path: Path) -> None:
    """Only a build sets it aside."""
    path = tmp_path / NAME
    path.write_bytes(b"no database" * 100)
    for attempt in (accept, accepted_builds, latest_builds):
        with pytest.raises(StorageError) as caught:
            attempt(path)
        assert caught.value.code == "history-damaged"
    assert path.read_bytes() == b"no database" * 100


def test_a_busy_store_is_said_to_be_so(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is accepted then."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError) as caught:
            accept(store)
        other.execute("ROLLBACK")
    assert caught.value.code == "history-busy"
    assert accepted_builds(store) == ()


def test_an_interrupted_acceptance_is_none(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two targets undoes the first."""
    calls: list[object] = []

    def interrupted(*words: object) -> None:
        calls.append(words)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ortrim.history.store.insert", interrupted)
        with pytest.raises(KeyboardInterrupt):
            accept(store)
    assert accepted_builds(store) == ()


def test_two_at_once_both_accept(store: Path) -> None:
    """None of their acceptances is lost."""
    commands = [(sys.executable, "-c", ACCEPTER, store, name) for name in ("a", "b")]
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(run, commands))
    assert [each.returncode for each in ended] == [0, 0], ended
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM acceptances").fetchone() == (20,)


def test_a_store_of_the_first_version_is_brought_to_today(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its builds can be accepted; what they did not keep is empty."""
    path = tmp_path / NAME
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", STEPS[:1])
        with database.opened(path) as connection:
            connection.execute(
                "INSERT INTO builds VALUES (1, 'then', 'demo', 'linux-x64', 'balanced', '1.21.0', '0.1.0', 'd', "
                "'pass', 1, 2, 3, 4, 5.0)"
            )
    (entry,) = builds(path)
    assert (entry.training_run, entry.models, entry.machines) == ("", (), ())
    accept(path)
    assert [each.entry for each in accepted_builds(path)] == [entry]


def test_models_and_machines_come_back(tmp_path: Path) -> None:
    """With the training run."""
    entry = replace(
        sample_entry(training_run="run-7"),
        models=(BuiltModel(name="m", original_sha256="a", sha256="b"),),
        machines=(MeasuredOn(device="host", machine="here", memory_meaningful=1, time_meaningful=0),),
    )
    record(tmp_path / NAME, entry)
    assert builds(tmp_path / NAME) == (entry,)
