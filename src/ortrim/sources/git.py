"""Git, as far as sources need it: one commit, as an archive."""

import os
from pathlib import Path
from typing import Final

from ortrim.errors import SourcesError
from ortrim.pins.source_sets import GitPin
from ortrim.tools.command import run

TIMEOUT_SECONDS: Final = 1800
SILENT_SECONDS: Final = 300
"""Of a fetch that is to show its progress, several times a second."""
AS_STORED: Final = ("-c", "core.autocrlf=false", "-c", "core.eol=lf")
"""Without these the user's settings could change line ends, and so what is built from one and the same commit."""


def git(folder: Path, *arguments: str) -> str:
    """Run git in `folder` and return what it printed.

    Raises `SourcesError` (`git-failed`) with git's own words, or `ToolError` when there is no git.
    """
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    silent_seconds = SILENT_SECONDS if "--progress" in arguments else None
    words: tuple[str | Path, ...] = ("git", "-C", folder, *arguments)
    done = run(words, environment=environment, timeout_seconds=TIMEOUT_SECONDS, silent_seconds=silent_seconds)
    if done.returncode != 0:
        why = "\n".join(done.stderr.strip().splitlines()[-5:])
        raise SourcesError("git-failed", f"git {arguments[0]} failed", where=str(folder), why=why)
    return done.stdout


def fetch_commit(pin: GitPin, work: Path, archive: Path) -> None:
    """Fetch the pinned tag into `work`, check that it is the pinned commit, and write its files as a tar archive.

    Raises `SourcesError` (`git-failed`, `commit-mismatch`).
    """
    work.mkdir(parents=True)
    git(work, "init", "--quiet", "--bare")
    git(work, "fetch", "--progress", "--depth", "1", "--no-tags", "--", pin.url, f"refs/tags/{pin.tag}")
    actual = git(work, "rev-parse", "FETCH_HEAD^{commit}").strip()
    if actual != pin.commit:
        why = f"expected {pin.commit}\nactual   {actual}"
        hint = "the tag was moved, or the pin is wrong; do not use it before you know which"
        what = f"the tag {pin.tag} is not the commit that was pinned"
        raise SourcesError("commit-mismatch", what, where=pin.url, why=why, hint=hint)
    write_archive(work, pin.commit, archive)


def write_archive(repository: Path, commit: str, archive: Path) -> None:
    """Write the files of a commit as a tar archive, without a leading folder."""
    git(repository, *AS_STORED, "archive", "--format=tar", f"--output={archive}", commit)


def tagged_commit(url: str, tag: str) -> str:
    """Ask a repository which commit a tag names. Raises `SourcesError` (`git-failed`, `no-such-tag`)."""
    printed = git(Path(), "ls-remote", "--", url, f"refs/tags/{tag}", f"refs/tags/{tag}^{{}}")
    names = {name: commit for commit, name in (line.split("\t") for line in printed.splitlines() if "\t" in line)}
    commit = names.get(f"refs/tags/{tag}^{{}}", names.get(f"refs/tags/{tag}"))
    if commit is None:
        raise SourcesError("no-such-tag", f"the repository has no tag {tag}", where=url)
    return commit
