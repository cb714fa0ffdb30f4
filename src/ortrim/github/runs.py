"""Runs of workflows and their jobs."""

from operator import attrgetter

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.pages import everything
from ortrim.github.records import Job, JobPage, Run, RunPage, parsed
from ortrim.github.repositories import Repository


def run_path(repository: Repository, run_id: int) -> str:
    """Return where the API has a run."""
    return f"{repository.path}/actions/runs/{run_id}"


def get_run(client: GitHub, repository: Repository, run_id: int) -> Run:
    """Return a run as it is now. Raises `NetworkError` (`run-not-found`, or as `GitHub.get`)."""
    path = run_path(repository, run_id)
    try:
        return parsed(Run, client.get(path), path)
    except NetworkError as error:
        if error.reference != "github-not-found":
            raise
        what = f"{repository} has no run {run_id}, or the token may not see it"
        hint = "it may have been deleted; invoke runs lists those that are there"
        raise NetworkError("run-not-found", what, where=path, why=error.why, hint=hint) from None


def get_jobs(client: GitHub, repository: Repository, run_id: int) -> tuple[Job, ...]:
    """Return the jobs of a run's latest attempt, with their steps."""
    path = f"{run_path(repository, run_id)}/jobs"
    return everything(client, path, JobPage, attrgetter("jobs"), filter="latest")


def latest_runs(client: GitHub, repository: Repository, workflow: str, number: int = 20) -> tuple[Run, ...]:
    """Return the newest runs of a workflow that were dispatched, up to `number`, at most 100."""
    path = f"{repository.path}/actions/workflows/{workflow}/runs"
    answer = client.get(path, event="workflow_dispatch", per_page=str(number))
    return parsed(RunPage, answer, path).workflow_runs[:number]


def cancel_run(client: GitHub, repository: Repository, run_id: int, *, force: bool = False) -> bool:
    """Ask for a run to be cancelled, which takes a while; `force` is for one that does not end for the asking.

    Returns False when it had ended already. Raises `NetworkError`; asking twice does no harm.
    """
    path = f"{run_path(repository, run_id)}/{'force-cancel' if force else 'cancel'}"
    answer = client.post(path) or client.post(path)
    if answer is None:
        hint = "look at the run, then try again"
        raise NetworkError("github-unreachable", "it is not known whether the run is cancelled", where=path, hint=hint)
    client.require(answer, path, 202, 409)
    return answer.status == 202
