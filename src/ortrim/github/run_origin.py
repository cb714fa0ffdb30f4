"""Whose run a run is: a repository also has runs for pull requests of forks, and those of its other workflows."""

from typing import Final

from ortrim.errors import NetworkError
from ortrim.github.records import Run
from ortrim.github.repositories import Repository

FOLDER: Final = ".github/workflows/"


def require_own_run(run: Run, repository: Repository, workflow: str) -> None:
    """Check that a run is one of this workflow's file, for a commit of the repository itself.

    A fork's pull request may change the workflow, and what such a run leaves is then whatever the fork's owner wanted.
    Raises `NetworkError` (`run-not-ours`).
    """
    home = run.head_repository.full_name if run.head_repository else "a repository that is gone"
    file = run.path.partition("@")[0]
    if home.lower() != str(repository).lower():
        why, hint = f"its commit is one of {home}", f"if {repository} has that name now: --repo {home}"
        hint = hint if run.head_repository else ""
        raise NetworkError("run-not-ours", f"it is not a run of {repository}", where=run.html_url, why=why, hint=hint)
    if file != FOLDER + workflow:
        why, hint = f"it is of {file or 'a workflow that it does not name'}", "invoke runs lists those that are"
        raise NetworkError("run-not-ours", f"it is not a run of {workflow}", where=run.html_url, why=why, hint=hint)
