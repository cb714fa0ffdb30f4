"""How many compilations run at once."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortrim.compiling import workspace as execution
from ortrim.compiling.workspace import Parallelism, choose_parallelism, limit_parallelism, memory_limit


@pytest.mark.parametrize(
    ("cores", "memory", "jobs", "reason"),
    [
        (2, 24 * 10**9, 2, "2 cores"),
        (1, 24 * 10**9, 1, "1 core"),
        (16, 8 * 10**9, 4, "8 GB of memory, 2 GB for each"),
        (8, 16 * 10**9, 8, "8 cores"),
        (4, 10**9, 1, "1 GB of memory, 2 GB for each"),
        (4, 0, 1, "0 GB of memory, 2 GB for each"),
    ],
)
def test_cores_and_memory_both_limit(cores: int, memory: int, jobs: int, reason: str) -> None:
    assert limit_parallelism(cores, memory) == Parallelism(jobs=jobs, reason=reason)


@given(st.integers(1, 1024), st.integers(0, 2**50))
def test_there_is_always_one_job_and_never_more_than_cores(cores: int, memory: int) -> None:
    assert 1 <= limit_parallelism(cores, memory).jobs <= cores


def test_what_the_user_asks_for_is_done() -> None:
    assert choose_parallelism(64) == Parallelism(jobs=64, reason="as asked")


def test_this_machine_allows_some_jobs() -> None:
    assert choose_parallelism(None).jobs >= 1


@pytest.mark.parametrize(("content", "limit"), [("4294967296\n", 4294967296), ("max\n", None), ("", None), ("0", None)])
def test_a_containers_memory_is_read(tmp_path: Path, content: str, limit: int | None) -> None:
    (tmp_path / "memory.max").write_text(content)
    assert memory_limit((tmp_path / "absent", tmp_path / "memory.max")) == limit


def test_without_a_control_group_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_limit((tmp_path / "absent", tmp_path)) is None


def test_a_container_has_fewer_jobs_than_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("1000000000")
    monkeypatch.setattr(execution, "CGROUP_MEMORY", (tmp_path / "memory.max",))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert choose_parallelism(None) == Parallelism(jobs=1, reason="1 GB of memory, 2 GB for each")
