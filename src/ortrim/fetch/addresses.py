"""Where anybody can fetch what a lock file names, without ortrim."""

from urllib.parse import quote

from ortrim.errors import UsageError
from ortrim.fetch.lock import NAME, Lock
from ortrim.fetch.snippets import SnippetFile


def snippet_files(lock: Lock) -> tuple[SnippetFile, ...]:
    """Return the files of a locked release with the addresses that GitHub's pages give them, but for those in archives.

    Raises `UsageError` (`snippet-needs-release`) for a run, whose artifacts have no lasting address.
    """
    origin = lock.origin
    if not origin.release:
        what, hint = f"{NAME} names a run", "make a release, then: invoke fetch --update --release TAG"
        why = "artifacts of a run need a token and expire"
        raise UsageError("snippet-needs-release", what, where="--snippet", why=why, hint=hint)
    base = f"https://{origin.host}/{origin.repository}/releases/download/{quote(origin.release, safe='')}"
    return tuple(
        SnippetFile(name=file.path, url=f"{base}/{quote(file.path)}", sha256=file.sha256, size_bytes=file.size)
        for file in lock.files
        if "/" not in file.path
    )
