"""The token: where it comes from, and how it is kept from being seen."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Never

from ortrim.errors import NetworkError, ToolError
from ortrim.storage.files import storage_errors
from ortrim.tools.command import run

HIDDEN: Final = "[token]"
SHAPE: Final = re.compile(r"[!-~]{4,4096}")
"""Visible ASCII; anything else could not stand in a header, and the library that refuses it prints it."""

GENERAL_NAMES: Final = ("GH_TOKEN", "GITHUB_TOKEN")
ENTERPRISE_NAMES: Final = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", *GENERAL_NAMES)
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

    Looked for in `file`; else in `GH_TOKEN` and `GITHUB_TOKEN` (for other hosts than github.com and ghe.com, first in
    `GH_ENTERPRISE_TOKEN` and `GITHUB_ENTERPRISE_TOKEN`, as GitHub's own client does); else asked of `gh auth token`.
    Raises `NetworkError` (`github-bad-token`) for what cannot be a token, `StorageError` for a file that cannot be
    read.
    """
    if file is not None:
        with storage_errors(file), file.open("rb") as opened:
            return _checked(opened.read(LARGEST_ANSWER).decode("ascii", "replace"), str(file))
    general = host == "github.com" or host.endswith(".ghe.com")
    for name in GENERAL_NAMES if general else ENTERPRISE_NAMES:
        if environment.get(name, "").strip():
            return _checked(environment[name], name)
    return _asked_of_gh(host, environment)


def _checked(text: str, origin: str) -> Token:
    secret = text.strip()
    if SHAPE.fullmatch(secret) is None:
        hint = "a token is one line of letters, digits and underscores"
        raise NetworkError("github-bad-token", "holds no token", where=origin, hint=hint)
    return Token(secret)


def _asked_of_gh(host: str, environment: Mapping[str, str]) -> Token | None:
    """Ask GitHub's own client, which may keep the token in the system's keyring."""
    argv = ("gh", "auth", "token", "--hostname", host)
    quiet = {**environment, "GH_PROMPT_DISABLED": "1"}
    try:
        done = run(argv, environment=quiet, timeout_seconds=ANSWER_SECONDS, most_bytes=LARGEST_ANSWER)
    except ToolError:
        return None
    return _checked(done.stdout, "gh auth token") if done.returncode == 0 and done.stdout.strip() else None
