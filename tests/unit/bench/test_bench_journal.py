"""Samples are on the disk as soon as they are measured."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bench_samples import sample, sample_plan
from ortrim.bench.points import BenchPlan
from ortrim.bench.scores import Journal, add, new_journal, read_journal, unfinished
from ortrim.errors import StorageError
from refusing import refused


@pytest.fixture(name="plan")
def fixture_plan() -> BenchPlan:
    return sample_plan("threads=1,2")


@pytest.fixture(name="begun")
def fixture_begun(tmp_path: Path, plan: BenchPlan) -> Journal:
    begun = new_journal(tmp_path / "bench", plan)
    add(begun.path, sample(0))
    add(begun.path, sample(1))
    return begun


def test_what_was_added_comes_back(begun: Journal, plan: BenchPlan) -> None:
    """The plan and every sample, in order; the file says when it was begun."""
    found = read_journal(begun.path)
    assert (found.plan, found.samples) == (plan, (sample(0), sample(1)))
    assert begun.path.name.startswith("demo-")
    assert begun.path.name.endswith("-20261121T120000.jsonl")


def test_two_begun_in_one_second_have_files_of_their_own(begun: Journal, plan: BenchPlan) -> None:
    other = new_journal(begun.path.parent, plan)
    assert other.path != begun.path
    assert len(read_journal(begun.path).samples) == 2


@pytest.mark.parametrize("cut", [1, 5, 60])
def test_a_line_that_is_not_whole_is_left_out(begun: Journal, cut: int) -> None:
    """As after a power cut; what follows begins on a line of its own."""
    content = begun.path.read_bytes()
    begun.path.write_bytes(content[:-cut])
    assert read_journal(begun.path).samples == (sample(0),)
    add(begun.path, sample(2))
    assert read_journal(begun.path).samples == (sample(0), sample(2))


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\x00\xff\n", b"[1]\n{}\n", b"no line"])
def test_a_damaged_journal_is_a_diagnostic(begun: Journal, content: bytes) -> None:
    begun.path.write_bytes(content)
    error = refused(StorageError, read_journal, begun.path)
    assert error.code == "journal-damaged"
    assert error.where == str(begun.path)


def test_a_bench_is_taken_up_by_what_it_measures(begun: Journal, plan: BenchPlan) -> None:
    """At another time and with another trial it is the same one; with another model or library it is not."""
    folder, total = begun.path.parent, 18
    (model,) = plan.models
    slower = replace(model, cases=tuple(replace(case, runs=3) for case in model.cases))
    later = replace(plan, recorded_at="2026-11-22T01:00:00+00:00", models=(slower,))
    found = unfinished(folder, later, total)
    assert found is not None
    assert (found.path, len(found.samples)) == (begun.path, 2)
    others = (
        replace(plan, rounds=4),
        replace(plan, deadline_ms=None),
        replace(plan, library=replace(plan.library, sha256="9" * 64)),
        replace(plan, models=(replace(model, sha256="9" * 64),)),
        replace(plan, models=(replace(model, points=model.points[:1]),)),
        replace(plan, machine=replace(plan.machine, pinned_cores=(0,))),
    )
    assert [unfinished(folder, other, total) for other in others] == [None] * len(others)


def test_a_finished_one_is_not_taken_up(begun: Journal, plan: BenchPlan) -> None:
    assert unfinished(begun.path.parent, plan, 2) is None
    newest = new_journal(begun.path.parent, replace(plan, recorded_at="2026-11-22T00:00:00+00:00"))
    found = unfinished(begun.path.parent, plan, 18)
    assert found is not None
    assert found.path == newest.path


def test_a_full_disk_keeps_what_was_written(begun: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    """The diagnostic names the file, and the samples before are whole."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("ortrim.bench.scores.os.fsync", full)
        assert refused(StorageError, add, begun.path, sample(2)).code == "disk-full"
    assert read_journal(begun.path).samples[:2] == (sample(0), sample(1))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_really_full_disk_is_a_diagnostic() -> None:
    assert refused(StorageError, add, Path("/dev/full"), sample(0)).code == "disk-full"


def test_a_file_in_the_folders_place_is_a_diagnostic(tmp_path: Path, plan: BenchPlan) -> None:
    (tmp_path / "bench").write_text("")
    assert refused(StorageError, new_journal, tmp_path / "bench", plan).code == "path-in-the-way"
    assert list(tmp_path.iterdir()) == [tmp_path / "bench"]
