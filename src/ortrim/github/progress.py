"""How far a run is, in numbers and words. Pure."""

from dataclasses import dataclass
from typing import Final

from ortrim.github.records import Job, Run

COMPLETED: Final = "completed"
WAITING: Final = {
    None: "started",
    "queued": "waiting for a runner",
    "pending": "waiting for other runs",
    "requested": "waiting to be taken up",
    "waiting": "waiting for somebody's approval",
}


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a run is; `seconds` since it is followed."""

    run: Run
    jobs: tuple[Job, ...]
    seconds: float

    @property
    def steps(self) -> tuple[int, int]:
        """How many steps of all jobs are over, and how many are known; a job that waits for others has none yet."""
        steps = [step for job in self.jobs for step in job.steps or ()]
        return sum(step.status == COMPLETED for step in steps), len(steps)

    @property
    def words(self) -> str:
        """What the run does: `linux-x64: Build the runtime, ios-arm64: waiting for a runner; 1 of 3 jobs over`."""
        if self.run.status == COMPLETED:
            return f"over: {self.run.conclusion}"
        over = sum(job.status == COMPLETED for job in self.jobs)
        doing = [f"{job.name}: {_doing(job)}" for job in self.jobs if job.status != COMPLETED]
        if not doing:
            return WAITING.get(self.run.status, f"{self.run.status}")
        return f"{', '.join(doing)}; {over} of {len(self.jobs)} jobs over"


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that happened to a job, or to the run as long as it has none; `over` when the job has ended."""

    words: str
    over: bool


def changes(before: Progress | None, after: Progress) -> tuple[Change, ...]:
    """Return what is different from the look before: the step that each job is at, the jobs that ended, and how."""
    known = {job.id: _said(job) for job in before.jobs} if before else {}
    found = tuple(
        Change(words=_said(job), over=job.status == COMPLETED) for job in after.jobs if known.get(job.id) != _said(job)
    )
    if found or after.jobs or (before and before.words == after.words):
        return found
    return (Change(words=after.words, over=False),)


def _said(job: Job) -> str:
    return f"{job.name}: {job.conclusion if job.status == COMPLETED else _doing(job)}"


def _doing(job: Job) -> str:
    """Return the step that a job is at."""
    step = next((step for step in job.steps or () if step.status == "in_progress"), None)
    return step.name if step else WAITING.get(job.status, "between two steps")
