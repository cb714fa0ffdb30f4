"""What lies in the folder of a prepared model: the copy, the files that hold its weights, and the facts."""

import hashlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import ValidationError

from ortrim.core.models import ModelFacts
from ortrim.core.serialization import from_json, to_json
from ortrim.errors import ModelError, StorageError
from ortrim.models.limits import LARGEST_MODEL_BYTES, refuse_size
from ortrim.storage.files import sha256_of, storage_errors

MODEL_FILE: Final = "model.onnx"
FACTS_LAYOUT: Final = "2"
"""To be part of the path to prepared models, and raised when what is kept beside them changes."""
FACTS_FILE: Final = "facts.json"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class StoredModel:
    """What is known of a copy, so that a rerun need not open it; `external` names the files with its weights."""

    facts: ModelFacts
    external: tuple[str, ...] = ()


def keep(stored: object, folder: Path) -> None:
    """Write what is known into a folder that is being made."""
    with storage_errors(folder):
        (folder / FACTS_FILE).write_text(to_json(stored))


def read_stored(folder: Path) -> StoredModel:
    """Return what is known of the copy in `folder`. Raises `StorageError` (`damaged-cache`)."""
    return read_facts(folder, StoredModel)


def read_facts(folder: Path, kind: type[T]) -> T:
    """Return what `keep` wrote. Raises `StorageError` (`damaged-cache`)."""
    try:
        return from_json(kind, (folder / FACTS_FILE).read_bytes())
    except (OSError, ValidationError) as error:
        hint = f"remove it, then run the same command again: rm -r {folder}"
        what = "a cached folder is not what this version of ortrim writes"
        raise StorageError("damaged-cache", what, where=str(folder), why=str(error), hint=hint) from error


def copy_file(source: Path, destination: Path, where: str) -> None:
    """Copy one file of the user's. Raises `ModelError` (`model-unreadable`) or `StorageError`."""
    try:
        with source.open("rb") as original, storage_errors(destination):
            destination.parent.mkdir(parents=True, exist_ok=True)
            with destination.open("wb") as copy:
                shutil.copyfileobj(original, copy, 1 << 20)
    except OSError as error:
        raise ModelError("model-unreadable", f"'{source}' cannot be read", where=where, why=str(error)) from error


def digest_with(path: Path, digest: str, names: tuple[str, ...], where: str) -> str:
    """Return one digest for a model file with SHA-256 `digest` and the files beside it; `digest` without any.

    Raises `ModelError` (`missing-external-data`, `model-too-large`).
    """
    if not names:
        return digest
    require_files(path.parent, names, where)
    size = sum((path.parent / name).stat().st_size for name in (path.name, *names))
    if size > LARGEST_MODEL_BYTES:
        refuse_size(size, where)
    lines = [digest, *(f"{name} {sha256_of(path.parent / name)}" for name in names)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def refuse_links(path: Path, names: tuple[str, ...], where: str) -> None:
    """Raise `ModelError` (`linked-external-data`) when a link leads from one of the files out of the model's folder.

    A model that is a link itself has two folders, its own and that of the file it leads to, as in ONNX Runtime
    (microsoft/onnxruntime#27374): the cache of Hugging Face's hub consists of such links.
    """
    folders = tuple(Path(os.path.realpath(folder)) for folder in (path.parent, Path(os.path.realpath(path)).parent))
    for name in names:
        target = Path(os.path.realpath(path.parent / name))
        if not any(target.is_relative_to(folder) for folder in folders):
            what = f"the model keeps weights in '{name}', a link that leads out of its folder, to '{target}'"
            hint = (
                "put the file itself there; if the link is meant, set allow_links = true for this model in a buildspec"
            )
            raise ModelError("linked-external-data", what, where=where, hint=hint)


def require_files(folder: Path, names: tuple[str, ...], where: str) -> None:
    """Raise `ModelError` (`missing-external-data`) unless every file is there."""
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        what = f"the model keeps weights in '{missing[0]}', which is not beside it"
        why = "missing: " + ", ".join(missing[:10])
        raise ModelError("missing-external-data", what, where=where, why=why, hint="put it into the model's folder")
