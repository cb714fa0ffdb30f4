"""How a run ended that did not succeed, in words for the user."""

from typing import Final

from ortrim.errors import BuildError, Diagnostic, DiagnosticGroup
from ortrim.github.client import GitHub
from ortrim.github.logs import failed_step, failing_lines
from ortrim.github.records import Job, Run
from ortrim.github.repositories import Repository

MOST_LOGS: Final = 5
FAILURES: Final = frozenset({"failure", "timed_out", "startup_failure"})
STARTUP_WHY: Final = "GitHub could not start it: the workflow file is not valid, or no runner is what it asks for"


def ending(client: GitHub, repository: Repository, run: Run, jobs: tuple[Job, ...]) -> Diagnostic:
    """Return the diagnostic of a run that is over and did not succeed.

    References: `run-cancelled`, `run-timeout`, and for each job that failed `run-failed`, with the end of its log.
    """
    failed = tuple(job for job in jobs if job.conclusion in FAILURES)
    timed_out = next((job for job in failed if job.conclusion == "timed_out"), None)
    if run.conclusion == "cancelled" and not failed:
        what, hint = "the run was cancelled", "or a job ran into its time limit, which GitHub calls cancelled too"
        return BuildError("run-cancelled", what, where=run.html_url, hint=hint)
    if timed_out is not None:
        what = f"the job {timed_out.name!r} ran into its time limit"
        return BuildError("run-timeout", what, where=timed_out.html_url or run.html_url)
    if run.conclusion == "timed_out":
        return BuildError("run-timeout", "the run hit its time limit", where=run.html_url)
    if not failed:
        why = STARTUP_WHY if run.conclusion == "startup_failure" else ""
        return BuildError("run-failed", f"the run ended as {run.conclusion!r}", where=run.html_url, why=why)
    errors = tuple(_job_error(client, repository, run, job) for job in failed[:MOST_LOGS])
    return errors[0] if len(errors) == 1 else DiagnosticGroup(errors)


def _job_error(client: GitHub, repository: Repository, run: Run, job: Job) -> BuildError:
    step = failed_step(job)
    at = f" at the step {step!r}" if step else ""
    why = "\n".join(failing_lines(client, repository, job))
    hint = f"the whole log: {job.html_url or run.html_url}"
    return BuildError("run-failed", f"the job {job.name!r} failed{at}", where=run.html_url, why=why, hint=hint)
