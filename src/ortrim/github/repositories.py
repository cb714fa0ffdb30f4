"""Which GitHub and which repository is meant, and the token for it, which is kept from being seen."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Never
from urllib.parse import urlsplit

from ortrim.base.command import last_lines, run
from ortrim.base.files import storage_errors
from ortrim.base.http import is_protected, split
from ortrim.errors import NetworkError, ToolError, UsageError

API: Final = "https://api.github.com"


@dataclass(frozen=True, kw_only=True)
class Service:
    """A GitHub: the address of its REST API, without a slash at the end, and the host that people see."""

    api: str = API
    host: str = "github.com"


def find_service(environment: Mapping[str, str] = os.environ) -> Service:
    """Return GitHub, or the server that `GITHUB_API_URL` names as GitHub's own runners set it."""
    given = environment.get("GITHUB_API_URL", "").rstrip("/")
    if not given:
        return Service()
    parts = split(given)
    if parts is None or not is_protected(given) or parts.username or parts.query or parts.fragment:
        hint = "it has the form https://HOST/api/v3"
        what = "is not the URL of an API that a token may be sent to"
        raise UsageError("github-bad-address", what, where="GITHUB_API_URL", hint=hint)
    return Service(api=given, host=(parts.hostname or "").removeprefix("api."))


def service_at(host: str, environment: Mapping[str, str] = os.environ) -> Service:
    """Return the GitHub that people see at `host`, where its API is by GitHub's own rules.

    If `GITHUB_API_URL` is of that host, it says where.
    """
    named = find_service(environment)
    if host.lower() == named.host.lower():
        return named
    if host.lower() == Service().host:
        return Service()
    own = host.lower().endswith(".ghe.com")
    return Service(api=f"https://api.{host}" if own else f"https://{host}/api/v3", host=host)


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


HIDDEN: Final = "[token]"
SHAPE: Final = re.compile(r"[!-~]{4,4096}")
"""Visible ASCII; anything else could not stand in a header, and the library that refuses it prints it."""

GENERAL_NAMES: Final = ("GH_TOKEN", "GITHUB_TOKEN")
ENTERPRISE_NAMES: Final = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
ANSWER_SECONDS: Final = 20
LARGEST_ANSWER: Final = 8192


class Token:
    """A secret that only `reveal` hands out: it cannot be printed, formatted, compared by content or pickled."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def reveal(self) -> str:
        """Return the secret, for the one header it belongs in."""
        return self._secret

    def redacted(self, text: str) -> str:
        """Return a text of others without the secret, should they have repeated it."""
        return text.replace(self._secret, HIDDEN)

    def __repr__(self) -> str:
        return HIDDEN

    def __reduce__(self) -> Never:
        raise TypeError("a token is not stored")


def find_token(
    host: str = "github.com", *, file: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Token | None:
    """Return the token for a host, None when there is none.

    Looked for in `file`; else in the variables that are for this host; else asked of `gh auth token`.
    """
    if file is not None:
        with storage_errors(file), file.open("rb") as opened:
            return _checked(opened.read(LARGEST_ANSWER).decode("ascii", "replace"), str(file))
    for name in _names_for(host.lower(), environment):
        if environment.get(name, "").strip():
            return _checked(environment[name], name)
    return _asked_of_gh(host, environment)


def _names_for(host: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables whose tokens are meant for a host, as GitHub's own client has it.

    `GH_TOKEN` and `GITHUB_TOKEN` are for github.com and ghe.com's subdomains alone
    (https://cli.github.com/manual/gh_help_environment); here also for the server that the environment itself names, as
    runners of GitHub Enterprise Server do: https://docs.github.com/actions/reference/variables-reference
    """
    if host == Service().host or host.endswith(".ghe.com"):
        return GENERAL_NAMES
    named = host == find_service(environment).host.lower()
    return (*ENTERPRISE_NAMES, *GENERAL_NAMES) if named else ENTERPRISE_NAMES


def _checked(text: str, origin: str) -> Token:
    secret = text.strip()
    if SHAPE.fullmatch(secret) is None:
        hint = "a token is one line of letters, digits and underscores"
        raise NetworkError("github-bad-token", "holds no token", where=origin, hint=hint)
    return Token(secret)


def _asked_of_gh(host: str, environment: Mapping[str, str]) -> Token | None:
    """Ask GitHub's own client, which may keep the token in the system's keyring.

    It does not see the variables: in a codespace it would take `GITHUB_TOKEN` for any host.
    """
    argv = ("gh", "auth", "token", "--hostname", host)
    rest = {name: value for name, value in environment.items() if name not in {*GENERAL_NAMES, *ENTERPRISE_NAMES}}
    quiet = {**rest, "GH_PROMPT_DISABLED": "1"}
    try:
        done = run(argv, environment=quiet, timeout_seconds=ANSWER_SECONDS, most_bytes=LARGEST_ANSWER)
    except ToolError:
        return None
    return _checked(done.stdout, "gh auth token") if done.returncode == 0 and done.stdout.strip() else None


TOKEN: Final = "GH_TOKEN"  # noqa: S105 - the variable's name
SECONDS: Final = 1800


def gh(*words: str | Path) -> str:
    """Run `gh` and return what it printed."""
    token = os.environ.get(TOKEN)
    if not token:
        hint = f"set {TOKEN} to a token that may write to the repository; a workflow has one: github.token"
        raise ToolError("gh-without-token", "has no token", where="gh", hint=hint)
    done = run(("gh", *words), environment={**os.environ, "GH_PROMPT_DISABLED": "1"}, timeout_seconds=SECONDS)
    if done.returncode != 0:
        why = last_lines(done.stderr).replace(token, "...")
        raise NetworkError("gh-failed", f"gh {words[0]} {words[1]} failed", where="gh", why=why)
    return done.stdout
