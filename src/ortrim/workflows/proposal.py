"""A pull request with the pins that were brought up to date."""

import hashlib
import tempfile
from pathlib import Path
from typing import Final

from ortrim.sources.git import git
from ortrim.tools.github_cli import gh

PATHS: Final = ("src/ortrim/pins",)
"""What is proposed; anything else that lies about is left out. The token of a workflow may not change workflows."""
AUTHOR: Final = (
    *("-c", "user.name=github-actions[bot]"),
    *("-c", "user.email=41898282+github-actions[bot]@users.noreply.github.com"),
)
CREDENTIALS: Final = ("-c", "credential.helper=", "-c", "credential.helper=!gh auth git-credential")
"""git asks `gh` for the token of the environment, so that no command line and no file has it."""
TITLE: Final = "Bring the pins up to date"


def propose(repository: Path, body: str) -> str | None:
    """Commit what changed among the pins to a branch, push it, open a pull request and return its address.

    The branch is named after the change: None when nothing changed, or when the same change was proposed before. Raises
    as `git` and `gh` do.
    """
    git(repository, "add", "--", *PATHS)
    change = git(repository, "diff", "--cached", "--", *PATHS)
    if not change:
        return None
    branch = f"pins/{hashlib.sha256(change.encode()).hexdigest()[:12]}"
    if git(repository, *CREDENTIALS, "ls-remote", "--heads", "origin", branch):
        return None
    git(repository, *AUTHOR, "commit", "--quiet", "--message", TITLE, "--", *PATHS)
    git(repository, *CREDENTIALS, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
    with tempfile.TemporaryDirectory(prefix="ortrim-proposal-") as work:
        text = Path(work) / "body.md"
        text.write_text(body, encoding="utf-8")
        return gh("pr", "create", "--head", branch, "--title", TITLE, "--body-file", text).strip()
