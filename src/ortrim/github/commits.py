"""Which commit a tag stands for."""

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from pydantic import Field

from ortrim.errors import NetworkError
from ortrim.github.client import GitHub
from ortrim.github.records import parsed
from ortrim.github.repositories import Repository


@dataclass(frozen=True, kw_only=True)
class _Commit:
    sha: Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]


def commit_of_tag(client: GitHub, repository: Repository, tag: str) -> str:
    """Return the commit of a tag. Raises `NetworkError` (`tag-not-found`, or as `GitHub.get`)."""
    path = f"{repository.path}/commits/{quote(f'tags/{tag}', safe='')}"
    try:
        # Pages are of the files that the commit changed, which nobody wants here.
        return parsed(_Commit, client.get(path, per_page="1"), path).sha
    except NetworkError as error:
        if error.reference not in {"github-not-found", "github-invalid-request"}:
            raise
        what = f"{repository} has no tag {tag[:200]!r}"
        raise NetworkError("tag-not-found", what, where=path, why=error.why, hint=error.hint) from None
