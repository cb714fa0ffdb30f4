"""A pull request with the pins that were brought up to date, and the record of new versions that it rests on."""

import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from ortrim.base.files import storage_errors, write_atomically
from ortrim.base.json import from_json, to_json
from ortrim.errors import Diagnostic, DiagnosticGroup, StorageError
from ortrim.github.credentials import gh
from ortrim.sources.checkouts import git

PATHS: Final = ("src/ortrim/pins",)
"""What is proposed; anything else that lies about is left out. The token of a workflow may not change workflows."""
PIN: Final = re.compile(r"[a-z0-9][a-z0-9._-]*\.toml|requirements/[a-z0-9][a-z0-9._-]*\.txt")
LARGEST: Final = 1 << 20
AUTHOR: Final = (
    *("-c", "user.name=github-actions[bot]"),
    *("-c", "user.email=41898282+github-actions[bot]@users.noreply.github.com"),
)
CREDENTIALS: Final = ("-c", "credential.helper=", "-c", "credential.helper=!gh auth git-credential")
"""git asks `gh` for the token of the environment, so that no command line and no file has it."""
TITLE: Final = "Bring the pins up to date"


def propose(repository: Path, body: str) -> str | None:
    """Commit what changed among the pins to a branch, push it, open a pull request and return its address.

    None when nothing changed, or when the same change was proposed before.
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


def take_pins(proposed: Path, repository: Path) -> tuple[Path, ...]:
    """Copy another job's pins in `proposed` over those of the repository, and no code: it ran that of others."""
    (pins,) = PATHS
    source = proposed / pins
    with storage_errors(source):
        if source.resolve() != proposed.resolve() / pins or not source.is_dir():
            raise _strange(source, "there is no such folder")
        found = sorted(path for path in source.rglob("*") if path.is_symlink() or not path.is_dir())
        contents = {path.relative_to(source).as_posix(): _pin(path, source) for path in found}
    if not contents:
        raise _strange(source, "there is none")
    for name, content in contents.items():
        write_atomically(repository / pins / name, content)
    return tuple(repository / pins / name for name in contents)


def _pin(path: Path, source: Path) -> bytes:
    if path.is_symlink() or not path.is_file() or PIN.fullmatch(path.relative_to(source).as_posix()) is None:
        raise _strange(path, "this is not the name of a file with pins, or it is a link")
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise _strange(path, str(error)) from error
    if len(content) > LARGEST:
        raise _strange(path, "too large")
    return content


def _strange(where: Path, why: str) -> StorageError:
    hint = "check the files of the previous job"
    return StorageError("not-a-pin", "only pins can be proposed", where=str(where), why=why, hint=hint)


RECORD: Final = "versions.json"
Version = Annotated[str, Field(pattern=r"^[0-9]{1,4}(\.[0-9]{1,4}){2}$")]
Reference = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}$")]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A version that could not be pinned, or not be built, and why: fields of a `Diagnostic`."""

    version: Version
    reference: Reference
    what: str
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class VersionsUpdate:
    """The newest version that was pinned before, those that were pinned now, oldest first, and those that were not.

    `unbuilt` says why the demo could not be built with `last`, or with the newest of `pinned`.
    """

    schema: Literal["ortrim-versions/1"] = "ortrim-versions/1"
    last: Version
    pinned: tuple[Version, ...] = ()
    refused: tuple[Refused, ...] = ()
    unbuilt: tuple[Refused, ...] = ()

    @property
    def newest(self) -> str:
        """The newest version that is pinned now."""
        return self.pinned[-1] if self.pinned else self.last


def refused_by(version: str, diagnostic: Diagnostic) -> Refused:
    """Return a refusal in the words of a diagnostic."""
    first = diagnostic.diagnostics[0] if isinstance(diagnostic, DiagnosticGroup) else diagnostic
    why = first.why.strip().splitlines()
    return Refused(version=version, reference=first.code, what=first.what, why=why[-1] if why else "")


def write_update(update: VersionsUpdate, folder: Path) -> Path:
    """Write the record into a folder and return its file."""
    write_atomically(folder / RECORD, to_json(update))
    return folder / RECORD


def read_update(folder: Path) -> VersionsUpdate | None:
    """Read the record in a folder, None when there is none."""
    path = folder / RECORD
    with storage_errors(path):
        if not path.is_file():
            return None
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    try:
        return from_json(VersionsUpdate, content)
    except ValidationError as error:
        hint = "run: invoke pins.update --latest"
        raise StorageError("record-damaged", "is not a record of versions", where=str(path), hint=hint) from error
