"""GitHub's own program `gh`, which every runner of theirs has. Its token is in the environment and in no command."""

import os
from pathlib import Path
from typing import Final

from ortrim.errors import NetworkError, ToolError
from ortrim.tools.command import run

TOKEN: Final = "GH_TOKEN"  # noqa: S105 - the variable's name
SECONDS: Final = 1800


def gh(*words: str | Path) -> str:
    """Run `gh` and return what it printed.

    Raises `ToolError` (`gh-without-token`, `tool-missing`) or `NetworkError` `gh-failed` with its own words.
    """
    token = os.environ.get(TOKEN)
    if not token:
        hint = f"set {TOKEN} to a token that may write to the repository; a workflow has one: github.token"
        raise ToolError("gh-without-token", "has no token to act with", where="gh", hint=hint)
    done = run(("gh", *words), environment={**os.environ, "GH_PROMPT_DISABLED": "1"}, timeout_seconds=SECONDS)
    if done.returncode != 0:
        why = "\n".join(done.stderr.strip().splitlines()[-5:]).replace(token, "...")
        raise NetworkError("gh-failed", f"gh {words[0]} {words[1]} failed", where="gh", why=why)
    return done.stdout
