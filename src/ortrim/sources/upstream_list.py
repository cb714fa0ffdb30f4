"""What upstream says of its dependencies: `cmake/deps.txt` in ONNX Runtime's own archive."""

import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

from ortrim.errors import NetworkError, SourcesError
from ortrim.storage.bounded import DAMAGE

DEPENDENCIES: Final = "cmake/deps.txt"
LARGEST_LIST: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Dependency:
    """One line of upstream's `cmake/deps.txt`."""

    name: str
    url: str
    sha1: str


def parse_dependencies(text: str) -> tuple[Dependency, ...]:
    """Read `cmake/deps.txt`: lines `name;url;sha1`, comments from `#`. Raises `SourcesError`."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return tuple(_dependency(line) for line in lines)


def _dependency(line: str) -> Dependency:
    parts = line.split(";")
    if len(parts) != 3 or len(parts[2]) != 40 or set(parts[2].lower()) - set("0123456789abcdef"):
        raise SourcesError("bad-dependency-list", f"cannot read {line[:100]!r}", where=DEPENDENCIES)
    return Dependency(name=parts[0], url=parts[1], sha1=parts[2].lower())


def version_in(url: str) -> str:
    """Return what an archive's address says of its version: a tag or a commit."""
    name = PurePosixPath(urlsplit(url).path).name
    for ending in (".zip", ".tar.gz", ".tgz"):
        name = name.removesuffix(ending)
    return name.removeprefix("v")


def read_dependency_list(archive: Path, commit: str) -> str:
    """Return `cmake/deps.txt` from ONNX Runtime's archive, once the archive says that it is of the tag's commit."""
    try:
        with zipfile.ZipFile(archive) as file:
            _check_commit(archive, file.comment.decode("ascii", "replace"), commit)
            name = next((name for name in file.namelist() if name.split("/", 1)[-1] == DEPENDENCIES), None)
            if name is None or file.getinfo(name).file_size > LARGEST_LIST:
                raise SourcesError("bad-dependency-list", "is missing or far too long", where=DEPENDENCIES)
            return file.read(name).decode("utf-8", "replace")
    except DAMAGE as error:
        raise NetworkError("corrupt-download", "is not a zip archive", where=str(archive), why=str(error)) from error


def _check_commit(archive: Path, comment: str, commit: str) -> None:
    """Compare with git's own mark: `git archive` writes the commit into the comment of a zip file."""
    if comment != commit:
        why = f"expected {commit}\nactual   {comment[:64] or '(none)'}"
        what = "the archive of ONNX Runtime does not say that it was made of the tag's commit"
        raise SourcesError("commit-mismatch", what, where=str(archive), why=why)
