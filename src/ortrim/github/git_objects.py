"""Files in a repository under a ref that is no branch: what a run needs and nobody else should see in the history.

https://docs.github.com/rest/git
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.records import GitObject, parsed
from ortrim.github.refs import look_at
from ortrim.github.refusals import message_of, unreachable
from ortrim.github.repositories import Repository
from ortrim.storage.files import storage_errors

ATTEMPTS: Final = 3
FILE_MODE: Final = "100644"
ABSENT: Final = "Reference does not exist"


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file of this machine and the path that it gets, with `/` between its parts."""

    path: str
    file: Path


def store_file(client: GitHub, repository: Repository, file: Path) -> str:
    """Store the content of a file, which no ref leads to yet, and return its name. Raises as `_made` and storage do."""
    with storage_errors(file):
        content = base64.b64encode(file.read_bytes()).decode()
    return _made(client, f"{repository.path}/git/blobs", {"content": content, "encoding": "base64"})


def store_commit(client: GitHub, repository: Repository, blobs: Mapping[str, str], message: str) -> str:
    """Make a commit without parents of stored contents, by their paths, and return its name."""
    entries = [{"path": path, "mode": FILE_MODE, "type": "blob", "sha": sha} for path, sha in blobs.items()]
    tree = _made(client, f"{repository.path}/git/trees", {"tree": entries})
    return _made(client, f"{repository.path}/git/commits", {"message": message, "tree": tree, "parents": []})


def create_ref(client: GitHub, repository: Repository, ref: str, commit: str) -> None:
    """Let a new ref, in full (`refs/x/y`), lead to a commit. Raises `NetworkError`."""
    path, data = f"{repository.path}/git/refs", {"ref": ref, "sha": commit}
    answer = client.post(path, data)
    if answer is None:
        answer = client.post(path, data)
        if answer is not None and answer.status == 422 and "already exists" in message_of(answer):
            return
    if answer is None:
        raise unreachable(path, "no answer came")
    client.require(answer, path, 201)


def remove_ref(client: GitHub, repository: Repository, ref: str) -> None:
    """Remove a ref; one that is not there is no error. Raises `NetworkError`.

    GitHub says of an absent one that it "does not exist"; its 404 means that the token may not see the repository.
    """
    path = f"{repository.path}/git/refs/{quote(ref.removeprefix('refs/'), safe='')}"
    answer = client.delete(path)
    if not (answer.status == 422 and ABSENT in message_of(answer)):
        client.require(answer, path, 204)


def _made(client: GitHub, path: str, data: Mapping[str, Any]) -> str:
    """Make an object that is named by its content, so that making it twice does no harm.

    Raises `NetworkError` (`github-refused`, `github-unreachable`, or as `GitHub.post`).
    """
    for _ in range(ATTEMPTS):
        answer = client.post(path, data)
        if answer is not None:
            client.require(answer, path, 201)
            return parsed(GitObject, answer, path).sha
    raise unreachable(path, "no answer came")


def require_private(client: GitHub, repository: Repository) -> None:
    """Refuse a repository that everybody may read.

    Raises `NetworkError` (`repository-public`, `repository-not-found`, or as `GitHub.get`).
    """
    if not look_at(client, repository).private:
        what = f"everybody may read {repository}, and so whatever is stored in it"
        hint = "use a private repository, or leave out --upload-models: the models then stay here"
        raise NetworkError("repository-public", what, where=client.service.host, hint=hint)
