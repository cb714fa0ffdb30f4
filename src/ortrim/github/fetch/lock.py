"""What a lock file says: where files came from, and what they are.

- `ortrim.lock`: what was fetched into an app, so that everybody who builds the app gets the same bytes.
"""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from ortrim.base.checksums import SUMS, FileEntry, first_clash, is_plain_path
from ortrim.base.files import storage_errors, write_atomically
from ortrim.errors import StorageError
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


HEADING: Final = (
    "# The files of `invoke fetch`: keep this file under version control.\n"
    "# `invoke fetch` gives the same files again; `invoke fetch --update` changes this file.\n"
)
LARGEST: Final = 4 << 20


@pydantic.dataclasses.dataclass(frozen=True, kw_only=True, config=CONFIG)
class _Document:
    schema_: Annotated[Literal["ortrim-lock/1"], Field(alias="schema")]
    origin: Origin
    output: PlainPath = OUTPUT
    artifact: tuple[LockedArtifact, ...] = ()
    file: Annotated[tuple[LockedFile, ...], Field(min_length=1)]


DOCUMENT: Final = TypeAdapter(_Document)


def read_lock(path: Path) -> Lock | None:
    """Return what a lock file holds, None when there is none.

    Raises `StorageError`: `lock-damaged`, or what the disk says.
    """
    with storage_errors(path):
        if not path.exists():
            return None
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    return parse_lock(content, str(path))


def parse_lock(content: bytes, where: str = NAME) -> Lock:
    """Read a lock file's bytes. Raises `StorageError` (`lock-damaged`) for whatever ortrim would not have written."""
    try:
        document = DOCUMENT.validate_json(json.dumps(tomllib.loads(content.decode())))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise damaged(where, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(where, str(error)) from error
    lock = Lock(origin=document.origin, output=document.output, artifacts=document.artifact, files=document.file)
    problem = next(_problems(lock), "too large" if len(content) > LARGEST else "")
    if problem:
        raise damaged(where, problem)
    return lock


def lock_text(lock: Lock) -> str:
    """Return the text of a lock file."""
    origin = {name: value for name, value in asdict(lock.origin).items() if value}
    parts = [
        HEADING + _lines({"schema": "ortrim-lock/1", "output": lock.output}),
        "[origin]\n" + _lines(origin),
        *(f"[[artifact]]\n{_lines({'name': each.name, 'sha256': each.sha256})}" for each in lock.artifacts),
        *(f"[[file]]\n{_lines(_file_values(each))}" for each in lock.files),
    ]
    return "\n".join(parts)


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock file, all of it or nothing. Raises `StorageError`, `lock-too-large` for what could not be read."""
    text = lock_text(lock).encode()
    if len(text) > LARGEST:
        what, hint = f"would have {len(text):,} bytes; {LARGEST:,} is the most", "fetch less: --spec, --target"
        raise StorageError("lock-too-large", what, where=str(path), hint=hint)
    write_atomically(path, text)


def damaged(where: str, why: str) -> StorageError:
    """Return the diagnostic of a lock file that cannot be read."""
    hint = "restore it from version control, or remove it and fetch again"
    return StorageError("lock-damaged", "is not a lock file of ortrim", where=where, why=why, hint=hint)


def _file_values(file: LockedFile) -> dict[str, Any]:
    values = {"path": file.path, "size": file.size, "sha256": file.sha256}
    return {**values, "signer": file.signer} if file.signer else values


def _problems(lock: Lock) -> Iterator[str]:
    """Yield what no single field can tell."""
    if bool(lock.origin.release) == bool(lock.origin.run):
        yield "it names a release and a run, or neither"
    if clash := first_clash([SUMS, *(file.path for file in lock.files)]):
        yield f"not every file system can hold {clash[0]!r} beside {clash[1]!r}"
    if lock.origin.run and not lock.artifacts:
        yield "a run has artifacts"


def _lines(values: dict[str, Any]) -> str:
    """Write keys and values. A string of JSON is one of TOML, but for DEL, which no value has."""
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
