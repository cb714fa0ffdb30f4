"""Which repository is meant."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ortrim.errors import ToolError, UsageError
from ortrim.tools.command import run

OWNER: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?"
NAME: Final = r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}"
FULL_NAME: Final = re.compile(rf"(?P<owner>{OWNER})/(?P<name>{NAME})")
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


def parse_repository(text: str, where: str = "--repo") -> Repository:
    """Read `owner/name`. Raises `UsageError` (`github-bad-repository`)."""
    match = FULL_NAME.fullmatch(text)
    if match is None:
        what, hint = f"{text[:100]!r} names no repository", "it has the form owner/name"
        raise UsageError("github-bad-repository", what, where=where, hint=hint)
    return Repository(owner=match["owner"], name=match["name"])


def find_repository(
    given: str, folder: Path, host: str = "github.com", *, environment: Mapping[str, str] = os.environ
) -> Repository:
    """Return the repository that was `given`, or else that of `GITHUB_REPOSITORY`, or of git's remote `origin`.

    Raises `UsageError` (`github-bad-repository`, `github-no-repository`). A remote's address may hold a password and is
    never printed.
    """
    if given:
        return parse_repository(given)
    if environment.get("GITHUB_REPOSITORY"):
        return parse_repository(environment["GITHUB_REPOSITORY"], "GITHUB_REPOSITORY")
    found = repository_of_remote(_remote(folder), host)
    if found is None:
        what = f"has no remote 'origin' at {host}"
        raise UsageError("github-no-repository", what, where=str(folder), hint="say which: --repo owner/name")
    return found


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


def _remote(folder: Path) -> str:
    try:
        done = run(("git", "-C", folder, "remote", "get-url", "origin"), timeout_seconds=GIT_SECONDS)
    except ToolError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
