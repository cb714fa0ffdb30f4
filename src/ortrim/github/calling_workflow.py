"""The workflow of an app's repository that has ortrim's `build.yml` build a buildspec."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ortrim.errors import UsageError, bad_option
from ortrim.github.repositories import FULL_NAME
from ortrim.github.workflow_files import FOLDER, REF, rendered

FLOATING: Final = "v1"
"""The tag that is ortrim's newest version."""
DEFAULT_TARGET: Final = "linux-x64"
PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./,-]*")
"""What YAML takes for nothing but text."""


@dataclass(frozen=True, kw_only=True)
class CalledProgram:
    """Ortrim's own repository, as `OWNER/NAME`, and the commit, tag or branch of it that builds."""

    repository: str
    ref: str


def called_program(word: str) -> CalledProgram:
    """Return what OWNER/NAME or OWNER/NAME@REF means. Raises `UsageError` (`bad-option`)."""
    repository, at, given = word.partition("@")
    ref = given if at else FLOATING
    if not (FULL_NAME.fullmatch(repository) and REF.fullmatch(ref)):
        raise bad_option("github", word[:100], "give ortrim's repository, as OWNER/NAME or OWNER/NAME@REF")
    return CalledProgram(repository=repository, ref=ref)


def calling_workflow(spec: Path, program: CalledProgram, target: str | None) -> tuple[Path, str]:
    """Return the file of a workflow that builds a buildspec, where there is none yet, and its text.

    It is in the repository around the buildspec's file, which need not be there yet; without any, in the file's folder.
    Raises `UsageError` (`bad-option`, `spec-exists`).
    """
    root = repository_around(spec)
    path = spec.resolve().relative_to(root).as_posix()
    if not path.isprintable() or "${{" in path:
        raise bad_option("output", repr(path)[:100], "give a folder that a workflow can name")
    file = root / FOLDER / f"{spec.stem}.yml"
    if file.exists():
        hint = "remove the file, or leave out --github"
        raise UsageError("spec-exists", "there is a workflow of this name already", where=str(file), hint=hint)
    return file, calling_text(spec.stem, path, program, target or DEFAULT_TARGET)


def calling_text(name: str, spec: str, program: CalledProgram, target: str) -> str:
    """Return the text of a workflow that builds a buildspec, a path in its repository."""
    return rendered("_calling", {"name": name, "program": program, "spec": _quoted(spec), "target": _quoted(target)})


def repository_around(file: Path) -> Path:
    """Return the folder of the git repository in which a file lies, its own folder if that is in none."""
    folder = file.resolve().parent
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def _quoted(text: str) -> str:
    return text if PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
