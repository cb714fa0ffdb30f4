"""How far a run is, in words."""

from dataclasses import replace

import pytest

from ortrim.github.client import Run, WorkflowJob, WorkflowStep
from ortrim.github.runs import RunProgress, changes


def run_of(status: str | None, conclusion: str | None = None) -> Run:
    return Run(id=1, status=status, conclusion=conclusion, html_url="https://github.invalid/1")


def job_of(name: str, status: str, *steps: str, number: int = 1, conclusion: str | None = None) -> WorkflowJob:
    made = tuple(
        WorkflowStep(name=f"step {place}", status=step, conclusion=None) for place, step in enumerate(steps, start=1)
    )
    return WorkflowJob(id=number, name=name, status=status, conclusion=conclusion, steps=made or None)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "started"), ("queued", "waiting for a runner"), ("waiting", "waiting for approval"),
        ("pending", "waiting for other runs"), ("requested", "waiting for a runner"), ("a new one", "a new one"),
    ],
)  # fmt: skip
def test_a_run_without_jobs_says_what_it_waits_for(status: str | None, words: str) -> None:
    """In words of its own for what GitHub is known to answer."""
    progress = RunProgress(run=run_of(status), jobs=(), seconds=1)
    assert progress.words == words
    assert progress.steps == (0, 0)


def test_each_job_says_where_it_is() -> None:
    """At a step, before its first, or between two; those that are over are counted."""
    jobs = (
        job_of("a", "in_progress", "completed", "in_progress", "queued"),
        job_of("b", "queued"),
        job_of("c", "completed", "completed"),
        job_of("d", "in_progress", "completed", "queued"),
    )
    progress = RunProgress(run=run_of("in_progress"), jobs=jobs, seconds=1)
    assert progress.words == "a: step 2, b: waiting for a runner, d: between two steps; 1 of 4 jobs over"
    assert progress.steps == (3, 6)


def test_a_run_that_is_over_says_how_it_ended() -> None:
    progress = RunProgress(run=run_of("completed", "failure"), jobs=(job_of("a", "in_progress"),), seconds=1)
    assert progress.words == "over: failure"


def test_each_change_is_reported_once() -> None:
    """A job that goes on to its next step, one that is new, one that ended and how; nothing of what stayed."""
    first = RunProgress(run=run_of("queued"), jobs=(), seconds=1)
    a, b = job_of("a", "in_progress", "in_progress", number=1), job_of("b", "queued", number=2)
    second = RunProgress(run=run_of("in_progress"), jobs=(a, b), seconds=2)
    over = job_of("a", "completed", "completed", number=1, conclusion="success")
    third = RunProgress(run=run_of("in_progress"), jobs=(over, b), seconds=3)
    assert changes(None, first) == (("waiting for a runner", False),)
    assert changes(first, first) == ()
    assert changes(first, second) == (
        ("a: step 1", False),
        ("b: waiting for a runner", False),
    )
    assert changes(second, third) == (("a: success", True),)
    assert changes(third, third) == ()


def test_two_jobs_of_one_name_are_told_apart() -> None:
    """By their numbers, as a matrix may name them alike."""
    both = tuple(job_of("a", "queued", number=number) for number in (1, 2))
    before = RunProgress(run=run_of("in_progress"), jobs=both, seconds=1)
    started = replace(before, jobs=(job_of("a", "in_progress", "in_progress", number=2), both[0]))
    assert changes(before, started) == (("a: step 1", False),)
