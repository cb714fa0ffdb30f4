import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_samples import sample_report
from ortrim.base.command import run
from ortrim.base.json import to_json
from ortrim.bench.points import entries_of
from ortrim.errors import ExitCode, StorageError
from ortrim.report.history import (
    NAME,
    BuildEntry,
    BuiltModel,
    MeasuredOn,
    Record,
    accept_latest,
    accepted_builds,
    append,
    benches,
    builds,
    latest_builds,
    read,
)
from refusing import refused
from sample_builds import sample_entry

AT = "2026-11-22T00:00:00+00:00"
WRITER = """
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from ortrim.base.json import from_json
from ortrim.report.history import Record, accept_latest, append
record = from_json(Record, sys.argv[2])
for number in range(5):
    name = sys.argv[3] + str(number)
    append(Path(sys.argv[1]), replace(record, build=replace(record.build, training_run=name)))
    accept_latest(Path(sys.argv[1]), spec="", target="", accepted_at="2026", note=name)
"""
KILLED = """
import resource, signal, sys
from pathlib import Path
from ortrim.base.json import from_json
from ortrim.report.history import Record, append
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
append(Path(sys.argv[1]), from_json(Record, sys.argv[2]))
"""
"""The system ends a process that writes beyond that size, after the bytes up to there."""

RECORD = to_json(Record(build=sample_entry()))


@pytest.fixture
def history(tmp_path: Path) -> Path:
    return tmp_path / "artifacts" / NAME


@pytest.fixture
def three(history: Path) -> Path:
    for entry in (sample_entry(), sample_entry(target="linux-arm64"), sample_entry(plan_digest="b" * 64)):
        record(history, entry)
    return history


def record(history: Path, entry: BuildEntry) -> Path | None:
    return append(history, Record(build=entry))


def accept(history: Path, spec: str = "", target: str = "", note: str = "") -> list[str]:
    found = accept_latest(history, spec=spec, target=target, accepted_at=AT, note=note)
    return [entry.plan_digest[:1] for entry in found]


def code_of(call: Callable[[], object]) -> str:
    error = refused(StorageError, call)
    assert error.exit_code == ExitCode.STORAGE
    return error.code


def test_what_is_recorded_comes_back(history: Path) -> None:
    entry = sample_entry()
    other = replace(
        sample_entry(target="linux-arm64", training_run="run-7"),
        components=(),
        measures=(),
        models=(BuiltModel(name="mö\n", original_sha256="a", sha256="b"),),
        machines=(MeasuredOn(device="host", machine="here", memory_meaningful=1, time_meaningful=0),),
    )
    points = entries_of(sample_report(threads_is_2=0.5))
    assert (record(history, entry), append(history, Record(benches=points)), record(history, other)) == (None,) * 3
    assert builds(history) == (entry, other)
    assert builds(history, spec=entry.spec, target="linux-arm64") == (other,)
    assert builds(history, spec="another") == ()
    assert benches(history) == benches(history, spec="demo", target="linux-x64") == points
    assert benches(history, spec="demo", target="linux-arm64") == ()


def test_the_latest_build_of_each_target_is_accepted(three: Path) -> None:
    """And comes back as what was accepted last; later builds change nothing of it."""
    assert accept(three, note="release 1") == ["4", "b"]
    record(three, sample_entry(plan_digest="c" * 64))
    found = {each.entry.target: each for each in accepted_builds(three)}
    assert found["linux-x64"].entry.plan_digest == "b" * 64
    assert (found["linux-arm64"].accepted_at, found["linux-arm64"].note) == (AT, "release 1")
    assert [entry.plan_digest[:1] for entry in latest_builds(three)] == ["4", "c"]


def test_a_later_acceptance_takes_the_place_of_an_earlier_one(three: Path) -> None:
    accept(three, note="first")
    record(three, sample_entry(plan_digest="c" * 64))
    assert accept(three, spec="silero-vad", target="linux-x64", note="second") == ["c"]
    notes = {each.entry.target: each.note for each in accepted_builds(three)}
    assert notes == {"linux-arm64": "first", "linux-x64": "second"}
    assert [each.note for each in accepted_builds(three, target="linux-arm64")] == ["first"]


def test_what_is_not_there_is_not_accepted(three: Path) -> None:
    before = three.read_bytes()
    assert accept(three, spec="unheard-of") == []
    assert (accepted_builds(three), three.read_bytes()) == ((), before)


@pytest.mark.parametrize("call", [accept, builds, accepted_builds, latest_builds, benches])
def test_without_a_history_there_is_a_hint(history: Path, call: Callable[[Path], object]) -> None:
    assert code_of(partial(call, history)) == "history-missing"
    assert not history.parent.exists()


DAMAGES = (
    b"no history at all",
    b"SQLite format 3\0",
    b"{}\n",
    b'{"builds": []}\n',
    b"\n",
    b'{"schema":"ortrim-history/1","build":{}}\n',
    b"\xff\n",
)


@pytest.mark.parametrize("content", DAMAGES)
def test_a_damaged_history_is_renamed_by_the_next_build(history: Path, content: bytes) -> None:
    entry = sample_entry()
    for number in (1, 2):
        history.parent.mkdir(exist_ok=True)
        history.write_bytes(content)
        for call in (accept, builds, benches):
            assert code_of(partial(call, history)) == "history-damaged"
        assert history.read_bytes() == content
        aside = record(history, entry)
        assert aside == history.with_name(f"history.damaged-{number}.jsonl")
        assert aside.read_bytes() == content
        assert builds(history) == (entry,)


def test_a_damaged_line_is_named(three: Path) -> None:
    lines = three.read_bytes().splitlines(keepends=True)
    three.write_bytes(lines[0] + lines[1].replace(b"linux", b'"') + lines[2])
    assert refused(StorageError, builds, three).where == f"{three}:2"


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_damaged_bytes_never_hinder_a_build(data: st.DataObject) -> None:
    """Whatever bytes are overwritten, an entry is recorded, or the history is of a later version."""
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / NAME
        record(history, sample_entry())
        content = bytearray(history.read_bytes())
        for _ in range(data.draw(st.integers(min_value=1, max_value=40))):
            content[data.draw(st.integers(min_value=0, max_value=len(content) - 1))] = data.draw(st.integers(0, 255))
        history.write_bytes(content)
        try:
            record(history, sample_entry())
        except StorageError as error:
            assert error.code == "history-newer"  # noqa: PT017 - either is right
        else:
            assert builds(history)[-1] == sample_entry()


def test_a_later_versions_history_is_left_alone(three: Path) -> None:
    with three.open("ab") as file:
        file.write(b'{"schema":"ortrim-history/1","more":[1]}\n')
    assert len(builds(three)) == 3
    with three.open("ab") as file:
        file.write(b'{"schema":"ortrim-history/2","build":7}\n')
    before = three.read_bytes()
    for call in (builds, accept, partial(record, entry=sample_entry())):
        assert code_of(partial(call, three)) == "history-newer"
    assert three.read_bytes() == before


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_a_history_that_was_cut_off_has_the_lines_before(data: st.DataObject) -> None:
    """Wherever the last line ends, it is no line, and the next one is whole."""
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / NAME
        record(history, sample_entry())
        first = history.stat().st_size
        record(history, sample_entry(target="linux-arm64"))
        content = history.read_bytes()
        history.write_bytes(content[: data.draw(st.integers(first, len(content) - 1))])
        assert builds(history) == (sample_entry(),)
        assert record(history, sample_entry(profile="size")) is None
        assert builds(history) == (sample_entry(), sample_entry(profile="size"))


def test_a_writer_that_is_killed_leaves_the_lines_before(three: Path) -> None:
    """The system ends it after some bytes of its line; readers and the next writer go on as before."""
    size = three.stat().st_size
    ended = run((sys.executable, "-c", KILLED, three, RECORD, str(size + 300)))
    assert ended.returncode < 0, ended
    assert three.stat().st_size == size + 300
    assert len(builds(three)) == 3
    assert accept(three) == ["4", "b"]
    assert record(three, sample_entry(profile="size")) is None
    assert (len(builds(three)), len(accepted_builds(three)), len(read(three))) == (4, 2, 5)


def test_several_at_once_all_write(history: Path) -> None:
    """Processes that begin the history lose none of their builds and acceptances."""
    with ThreadPoolExecutor(3) as threads:
        ended = list(threads.map(lambda name: run((sys.executable, "-c", WRITER, history, RECORD, name)), "abc"))
    assert [each.returncode for each in ended] == [0, 0, 0], ended
    written = [f"{name}{number}" for name in "abc" for number in range(5)]
    assert sorted(each.training_run for each in builds(history)) == written
    assert sorted(each.accepted[0].note for each in read(history) if each.accepted) == written


def test_a_folder_that_cannot_be_made_is_a_diagnostic(tmp_path: Path) -> None:
    """A file where the output folder should be, or a folder where the history should be."""
    (tmp_path / "file").write_text("")
    (tmp_path / NAME).mkdir()
    for path in (tmp_path / "file" / NAME, tmp_path / NAME):
        assert code_of(partial(record, path, sample_entry())) == "path-in-the-way"
