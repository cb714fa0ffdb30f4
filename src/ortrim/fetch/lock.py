"""What a lock file says: where files came from, and what they are."""

from dataclasses import dataclass
from typing import Annotated, Final

import pydantic
from pydantic import AfterValidator, ConfigDict, Field

from ortrim.core.sums import FileEntry, is_plain_path
from ortrim.github.repositories import FULL_NAME

NAME: Final = "ortrim.lock"
OUTPUT: Final = "ortrim-runtime"
CONFIG: Final = ConfigDict(extra="forbid", strict=True)


def _plain(path: str) -> str:
    if not is_plain_path(path):
        raise ValueError("no plain path")
    return path


def _full_name(name: str) -> str:
    if FULL_NAME.fullmatch(name) is None:
        raise ValueError("not owner/name")
    return name


PlainPath = Annotated[str, AfterValidator(_plain)]
FullName = Annotated[str, AfterValidator(_full_name)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
Host = Annotated[str, Field(pattern=r"^[A-Za-z0-9:][A-Za-z0-9.:-]{0,251}$")]
Word = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f-\x9f]*$")]


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class LockedArtifact:
    """An artifact of a run, or an archive of a release: the SHA-256 is that of the archive as GitHub stores it."""

    name: Word
    sha256: Sha256


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class LockedFile:
    """A file: its path in the output, what it is, and the workflow that vouches for it, empty for none checked."""

    path: PlainPath
    size: Annotated[int, Field(ge=0, le=2**53)]
    sha256: Sha256
    signer: Word = ""

    @property
    def entry(self) -> FileEntry:
        """The file without its signer."""
        return FileEntry(path=self.path, size_bytes=self.size, sha256=self.sha256)


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class Origin:
    """Where files came from: a release by its tag, or else a run; what was chosen of it, empty for everything."""

    host: Host
    repository: FullName
    release: Word = ""
    run: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    commit: Commit
    spec: Word = ""
    target: Word = ""

    @property
    def words(self) -> str:
        """Repository and release or run, for people."""
        return f"{self.repository} {self.release or f'run {self.run}'}"


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A lock file's content; `files` are in order of their paths, `output` is the folder that they go to."""

    origin: Origin
    output: str = OUTPUT
    artifacts: tuple[LockedArtifact, ...] = ()
    files: tuple[LockedFile, ...]
