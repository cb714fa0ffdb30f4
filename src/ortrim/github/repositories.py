"""Which repository is meant."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote, urlsplit

from pydantic import Field

from ortrim.base.command import run
from ortrim.errors import NetworkError, ToolError, UsageError
from ortrim.github.client import GitHub, RepositoryFacts, parsed
from ortrim.github.credentials import Service, find_service, service_at

OWNER: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?"
NAME: Final = r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}"
FULL_NAME: Final = re.compile(rf"(?P<owner>{OWNER})/(?P<name>{NAME})")
HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(?::\d{1,5})?")
SCP_LIKE: Final = re.compile(r"(?:[^@/]+@)?(?P<host>[^:/]+):(?P<path>[^/].*)")
"""Git's short form for ssh, `git@github.com:owner/name.git`."""

GIT_SECONDS: Final = 20


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository of GitHub's."""

    owner: str
    name: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def path(self) -> str:
        """Where the API has it."""
        return f"/repos/{self.owner}/{self.name}"

    def run_path(self, run_id: int) -> str:
        """Return where the API has a run."""
        return f"{self.path}/actions/runs/{run_id}"


@dataclass(frozen=True, kw_only=True)
class Site:
    """A repository and the GitHub that has it."""

    service: Service
    repository: Repository

    def __str__(self) -> str:
        return f"{self.service.host}/{self.repository}"


def find_site(given: str, folder: Path, *, environment: Mapping[str, str] = os.environ) -> Site:
    """Return the repository that was `given` and its GitHub, or else what `find_repository` finds.

    `given` is `owner/name` at the GitHub of `GITHUB_API_URL`, or at github.com; or with a host before it, or its whole
    address, for another one. A remote of git alone never says that a token is to be sent to another host.
    """
    host, _, name = given.removeprefix("https://").removesuffix("/").removesuffix(".git").partition("/")
    if given.count("/") < 2:
        service = find_service(environment)
        return Site(service=service, repository=find_repository(given, folder, service.host, environment=environment))
    if not HOST.fullmatch(host) or FULL_NAME.fullmatch(name) is None:
        raise _no_repository(given, "--repo")
    return Site(service=service_at(host, environment), repository=parse_repository(name))


def parse_repository(text: str, where: str = "--repo") -> Repository:
    """Read `owner/name`."""
    match = FULL_NAME.fullmatch(text)
    if match is None:
        raise _no_repository(text, where)
    return Repository(owner=match["owner"], name=match["name"])


def _no_repository(text: str, where: str) -> UsageError:
    what = f"{text[:100]!r} names no repository"
    hint = "it has the form owner/name; for hosts other than github.com, host/owner/name"
    return UsageError("github-bad-repository", what, where=where, hint=hint)


def find_repository(
    given: str, folder: Path, host: str = "github.com", *, environment: Mapping[str, str] = os.environ
) -> Repository:
    """Return the repository that was `given`, or else that of `GITHUB_REPOSITORY`, or of git's remote `origin`.

    A remote's address may hold a password and is never printed.
    """
    if given:
        return parse_repository(given)
    if environment.get("GITHUB_REPOSITORY"):
        return parse_repository(environment["GITHUB_REPOSITORY"], "GITHUB_REPOSITORY")
    found = own_repository(folder, host)
    if found is None:
        what = f"has no remote 'origin' at {host}"
        raise UsageError("github-no-repository", what, where=str(folder), hint="say which: --repo owner/name")
    return found


def own_repository(folder: Path, host: str) -> Repository | None:
    """Return the repository at `host` that a folder's checkout came from, None when there is none."""
    return repository_of_remote(_git(folder, "remote", "get-url", "origin"), host)


def own_branch(folder: Path) -> str:
    """Return the branch that is checked out in a folder, empty for none."""
    return _git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")


def repository_of_remote(url: str, host: str) -> Repository | None:
    """Return the repository that an address of git names, None when it is not one of `host`'s."""
    short = SCP_LIKE.fullmatch(url)
    if "://" not in url and short is not None:
        at, path = short["host"], short["path"]
    else:
        at, path = _place(url)
    match = FULL_NAME.fullmatch(path.strip("/").removesuffix(".git"))
    if match is None or at.lower().removeprefix("ssh.") != host.lower():
        return None
    return Repository(owner=match["owner"], name=match["name"])


def _place(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    return parts.hostname or "", parts.path


def _git(folder: Path, *words: str) -> str:
    try:
        done = run(("git", "-C", folder, *words), timeout_seconds=GIT_SECONDS)
    except ToolError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def choose_ref(client: GitHub, repository: Repository, folder: Path) -> str:
    """Return the branch that is checked out in `folder` if GitHub has it, otherwise the repository's default branch.

    The branch counts only when the checkout came from that very repository.
    """
    origin = own_repository(folder, client.service.host)
    if origin is not None and str(origin).lower() == str(repository).lower():
        branch = own_branch(folder)
        if branch and has_branch(client, repository, branch):
            return branch
    return look_at(client, repository).default_branch


def has_branch(client: GitHub, repository: Repository, branch: str) -> bool:
    """Whether GitHub has a branch of this name."""
    try:
        client.get(f"{repository.path}/branches/{quote(branch, safe='')}")
    except NetworkError as error:
        if error.code != "github-not-found":
            raise
        return False
    return True


def look_at(client: GitHub, repository: Repository) -> RepositoryFacts:
    """Return what GitHub says of a repository."""
    try:
        return parsed(RepositoryFacts, client.get(repository.path), repository.path)
    except NetworkError as error:
        if error.code != "github-not-found":
            raise
        what = f"there is no {repository} at {client.service.host}, or the token may not see it"
        hint = "say which repository has the workflow: --repo owner/name"
        raise NetworkError("repository-not-found", what, where=repository.path, why=error.why, hint=hint) from None


@dataclass(frozen=True, kw_only=True)
class _Commit:
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


def commit_of_tag(client: GitHub, repository: Repository, tag: str) -> str:
    """Return the commit of a tag."""
    path = f"{repository.path}/commits/{quote(f'tags/{tag}', safe='')}"
    try:
        # Pages are of the files that the commit changed, which nobody wants here.
        return parsed(_Commit, client.get(path, per_page="1"), path).sha
    except NetworkError as error:
        if error.code not in {"github-not-found", "github-invalid-request"}:
            raise
        what = f"{repository} has no tag {tag[:200]!r}"
        raise NetworkError("tag-not-found", what, where=path, why=error.why, hint=error.hint) from None
