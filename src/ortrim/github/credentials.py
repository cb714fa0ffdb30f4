"""The token: where it comes from, and how it is kept from being seen."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Never

from ortrim.errors import NetworkError, ToolError
from ortrim.github.addresses import Service, find_service
from ortrim.storage.files import storage_errors
from ortrim.tools.command import run

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

    Looked for in `file`; else in the variables that are for this host; else asked of `gh auth token`. Raises
    `NetworkError` (`github-bad-token`) for what cannot be a token, `StorageError` for a file that cannot be read,
    `UsageError` as `find_service` does.
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
