"""The repository at GitHub that a task works with."""

from dataclasses import dataclass
from pathlib import Path

from ortrim.console import Console
from ortrim.github.client import GitHub
from ortrim.github.credentials import find_token
from ortrim.github.patience import PatientSession
from ortrim.github.repositories import Repository, Site, find_site


@dataclass(frozen=True, kw_only=True)
class Remote:
    """What the command line says of where a run is: the repository, the branch or tag, the file that has the token.

    Without `repository` and `ref` they are found out; see `find_site` and `choose_ref`.
    """

    repository: str = ""
    ref: str = ""
    token_file: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A repository and a client that may ask for it."""

    site: Site
    client: GitHub

    @property
    def repository(self) -> Repository:
        """Return the repository."""
        return self.site.repository


def connect(remote: Remote, console: Console) -> Connection:
    """Find out which repository is meant, and the token for it; asks nothing of GitHub yet.

    Raises `UsageError`, `NetworkError` and `StorageError` as `find_site` and `find_token` do.
    """
    site = find_site(remote.repository, Path.cwd())
    token = find_token(site.service.host, file=remote.token_file)
    return Connection(site=site, client=GitHub(site.service, token, PatientSession(token, announce=console.note)))
