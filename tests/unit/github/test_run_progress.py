"""How far a run is, in words."""

import pytest

from ortrim.github.progress import Progress
from ortrim.github.records import Job, Run, Step


def run_of(status: str | None, conclusion: str | None = None) -> Run:
    """Return a run in a certain state."""
    return Run(id=1, status=status, conclusion=conclusion, html_url="https://github.invalid/1")


def job_of(name: str, status: str, *steps: str) -> Job:
    """Return a job whose steps are in these states."""
    made = tuple(
        Step(name=f"step {number}", number=number, status=step, conclusion=None)
        for number, step in enumerate(steps, start=1)
    )
    return Job(id=1, name=name, status=status, conclusion=None, steps=made or None)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (None, "started"), ("queued", "waiting for a runner"), ("waiting", "waiting for somebody's approval"),
        ("pending", "waiting for other runs"), ("requested", "waiting to be taken up"), ("a new one", "a new one"),
    ],
)  # fmt: skip
def test_a_run_without_jobs_says_what_it_waits_for(status: str | None, words: str) -> None:
    """In words of its own for what GitHub is known to answer."""
    progress = Progress(run=run_of(status), jobs=(), seconds=1)
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
    progress = Progress(run=run_of("in_progress"), jobs=jobs, seconds=1)
    assert progress.words == "a: step 2, b: waiting for a runner, d: between two steps; 1 of 4 jobs over"
    assert progress.steps == (3, 6)


def test_a_run_that_is_over_says_how_it_ended() -> None:
    """Whatever its jobs say, which may be of an instant earlier."""
    progress = Progress(run=run_of("completed", "failure"), jobs=(job_of("a", "in_progress"),), seconds=1)
    assert progress.words == "over: failure"
