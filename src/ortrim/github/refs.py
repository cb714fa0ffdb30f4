"""Which branch a run is started on."""

from pathlib import Path
from urllib.parse import quote

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.records import RepositoryFacts, parsed
from ortrim.github.repositories import Repository, own_branch, own_repository


def choose_ref(client: GitHub, repository: Repository, folder: Path) -> str:
    """Return the branch that is checked out in `folder` if GitHub has it, otherwise the repository's default branch.

    The branch counts only when the checkout came from that very repository. Raises `NetworkError`
    (`repository-not-found`, or as `GitHub.get`).
    """
    origin = own_repository(folder, client.service.host)
    if origin is not None and str(origin).lower() == str(repository).lower():
        branch = own_branch(folder)
        if branch and has_branch(client, repository, branch):
            return branch
    return look_at(client, repository).default_branch


def has_branch(client: GitHub, repository: Repository, branch: str) -> bool:
    """Whether GitHub has a branch of this name. Raises `NetworkError` as `GitHub.get` does."""
    try:
        client.get(f"{repository.path}/branches/{quote(branch, safe='')}")
    except NetworkError as error:
        if error.reference != "github-not-found":
            raise
        return False
    return True


def look_at(client: GitHub, repository: Repository) -> RepositoryFacts:
    """Return what GitHub says of a repository. Raises `NetworkError` (`repository-not-found`, or as `GitHub.get`)."""
    try:
        return parsed(RepositoryFacts, client.get(repository.path), repository.path)
    except NetworkError as error:
        if error.reference != "github-not-found":
            raise
        what = f"there is no {repository} at {client.service.host}, or the token may not see it"
        hint = "say which repository has the workflow: --repo owner/name"
        raise NetworkError("repository-not-found", what, where=repository.path, why=error.why, hint=hint) from None
