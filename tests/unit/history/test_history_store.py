import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ortrim.base.command import run
from ortrim.base.json import to_json
from ortrim.errors import ExitCode, StorageError
from ortrim.history import store as database
from ortrim.history.rows import BuildEntry, Measure
from ortrim.history.store import NAME, STEPS, builds, record
from sample_builds import sample_entry

WRITER = """
import sys
from pathlib import Path
from ortrim.history.rows import BuildEntry
from ortrim.base.json import from_json
from ortrim.history.store import record
for _ in range(int(sys.argv[3])):
    record(Path(sys.argv[1]), from_json(BuildEntry, sys.argv[2]))
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Path]:
    """Return the path of a store that does not exist, and see that what is left is one whole database."""
    path = tmp_path / "artifacts" / NAME
    yield path
    if path.is_file():
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() in {("ok",), None}


@pytest.fixture
def entry() -> BuildEntry:
    """Return the demo's build."""
    return sample_entry()


def test_what_is_recorded_comes_back(store: Path, entry: BuildEntry) -> None:
    """All figures of a build, its components and its measures come back in order."""
    other = replace(entry, target="linux-arm64", components=(), measures=())
    assert record(store, entry) is None
    assert record(store, other) is None
    assert builds(store) == (entry, other)
    assert builds(store, spec=entry.spec, target="linux-arm64") == (other,)
    assert builds(store, spec="another") == ()


def test_without_a_store_there_is_a_hint(store: Path) -> None:
    """Reading makes no file."""
    with pytest.raises(StorageError) as caught:
        builds(store)
    assert (caught.value.code, caught.value.exit_code) == ("history-missing", ExitCode.STORAGE)
    assert not store.parent.exists()


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough for a header" * 9, b"SQLite format 3\x00"]
)
def test_a_damaged_store_is_set_aside(store: Path, entry: BuildEntry, content: bytes) -> None:
    """Reading says that it is damaged; the next build keeps it under another name and begins anew."""
    store.parent.mkdir()
    store.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        builds(store)
    assert caught.value.code == "history-damaged"
    assert store.read_bytes() == content
    aside = record(store, entry)
    assert aside == store.with_name("history.damaged-1.sqlite3")
    assert aside.read_bytes() == content
    assert builds(store) == (entry,)
    store.write_bytes(content)
    assert record(store, entry) == store.with_name("history.damaged-2.sqlite3")


def test_a_store_of_somebody_else_is_set_aside(store: Path, entry: BuildEntry) -> None:
    """A database whose tables are not ours is not written to."""
    store.parent.mkdir()
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("CREATE TABLE builds (something TEXT)")
        connection.commit()
    aside = record(store, entry)
    assert aside is not None
    with closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT count(*) FROM builds").fetchone() == (0,)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_store_with_damaged_bytes_never_breaks_a_build(data: st.DataObject) -> None:
    """Whatever bytes are overwritten, an entry is recorded, or a diagnostic of the store says why not."""
    entry = sample_entry()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / NAME
        record(store, entry)
        content = bytearray(store.read_bytes())
        for _ in range(data.draw(st.integers(min_value=1, max_value=40))):
            content[data.draw(st.integers(min_value=0, max_value=len(content) - 1))] = data.draw(st.integers(0, 255))
        store.write_bytes(content)
        try:
            record(store, entry)
        except StorageError as error:
            assert error.code.startswith("history-")  # noqa: PT017 - either is right


def test_a_later_versions_store_is_left_alone(store: Path, entry: BuildEntry) -> None:
    """It is neither written nor set aside."""
    record(store, entry)
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(f"PRAGMA user_version = {len(STEPS) + 1}")
    for attempt in (lambda: builds(store), lambda: record(store, entry)):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert caught.value.code == "history-newer"
    assert sorted(path.name for path in store.parent.iterdir() if not path.name.startswith(".")) == [NAME]


def test_an_older_store_is_brought_to_today(store: Path, entry: BuildEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that a later version adds is taken once, and what was recorded stays."""
    record(store, entry)
    further = (*STEPS, ("CREATE TABLE more (build INTEGER REFERENCES builds (id)) STRICT",))
    monkeypatch.setattr("ortrim.history.store.STEPS", further)
    record(store, entry)
    assert builds(store) == (entry, entry)
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(further),)
        assert connection.execute("SELECT count(*) FROM more").fetchone() == (0,)


def test_a_step_that_fails_leaves_the_store_as_it_was(
    store: Path, entry: BuildEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a migration is undone."""
    record(store, entry)
    broken = (*STEPS, ("CREATE TABLE more (build INTEGER) STRICT", "CREATE nonsense"))
    with monkeypatch.context() as patch:
        patch.setattr("ortrim.history.store.STEPS", broken)
        with pytest.raises(StorageError):
            builds(store)
    assert builds(store) == (entry,)


def test_a_writer_does_not_wait_for_ever(store: Path, entry: BuildEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that another program holds gives a diagnostic, and nothing of the entry is in it."""
    record(store, entry)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(store, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError) as caught:
            record(store, entry)
        other.execute("ROLLBACK")
    assert caught.value.code == "history-busy"
    assert builds(store) == (entry,)


def test_an_interrupted_entry_leaves_nothing(store: Path, entry: BuildEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between two rows undoes the first."""
    record(store, entry)

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ortrim.history.store.asdict", interrupted)
        with pytest.raises(KeyboardInterrupt):
            record(store, entry)
    assert builds(store) == (entry,)


def test_two_at_once_both_write(store: Path) -> None:
    """Processes that begin the store together lose none of their entries."""
    command: tuple[str | Path, ...] = (sys.executable, "-c", WRITER, store, to_json(sample_entry()), "5")
    with ThreadPoolExecutor(3) as threads:
        ended = list(threads.map(lambda _: run(command), range(3)))
    assert [each.returncode for each in ended] == [0, 0, 0], ended
    assert len(builds(store)) == 15


def test_a_folder_that_cannot_be_made_is_a_diagnostic(tmp_path: Path, entry: BuildEntry) -> None:
    """A file where the output folder should be, or a folder where the store should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as caught:
        record(tmp_path / "file" / NAME, entry)
    assert caught.value.code == "path-in-the-way"
    (tmp_path / NAME).mkdir()
    with pytest.raises(StorageError) as caught:
        record(tmp_path / NAME, entry)
    assert caught.value.code == "history-failed"


def test_wrong_kinds_of_values_are_refused(store: Path, entry: BuildEntry) -> None:
    """The tables are strict: what is read back has the types that were written."""
    wrong = replace(entry, measures=(Measure(device="d", model="m", case="", measure="x", unit="ms", value="fast"),))  # type: ignore[arg-type]
    with pytest.raises(StorageError):
        record(store, wrong)
    assert builds(store) == ()
