"""A buildspec with all files of this machine that it names, to be laid out anew on another machine."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ortrim.console import counted
from ortrim.core.buildspec import LoadedSpec
from ortrim.core.models import PreparedModel
from ortrim.errors import PlanError
from ortrim.github.git_objects import StoredFile
from ortrim.models.copies import read_stored
from ortrim.pipeline.steps.words import step_files

LARGEST_FILE: Final = 32 << 20
"""A third more as the text that travels. GitHub gives back files up to 100 MB this way; how much it takes it says
nowhere."""
LARGEST_TOTAL: Final = 96 << 20
MOST_FILES: Final = 500


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Files, and where the buildspec is among them."""

    spec: PurePosixPath
    files: tuple[StoredFile, ...]


def bundle(loaded: LoadedSpec, prepared: tuple[PreparedModel, ...]) -> Bundle:
    """Return a buildspec and the models, weights and recorded cases that it names, as they lie to each other.

    Folders above the one that holds all of them are left out. Raises `PlanError`: `plan-cannot-travel` for sources or
    files that are named by absolute paths, `upload-too-large`.
    """
    if loaded.spec.onnxruntime.path:
        raise _stays("onnxruntime.path", "sources are not uploaded, only models", "use pinned sources")
    places = {Path(os.path.normpath(loaded.file.absolute())): loaded.file}
    for written, file in _named(loaded, prepared):
        if written.is_absolute():
            raise _stays(
                str(loaded.file), f"it names {written}, which is no path on another machine", "name it relatively"
            )
        places[Path(os.path.normpath(loaded.file.absolute().parent / written))] = file
    top = Path(os.path.commonpath([place.parent for place in places]))
    files = tuple(
        StoredFile(path=place.relative_to(top).as_posix(), file=file) for place, file in sorted(places.items())
    )
    _require_small(files, loaded.spec.name)
    return Bundle(spec=PurePosixPath(files[[each.file for each in files].index(loaded.file)].path), files=files)


def _named(loaded: LoadedSpec, prepared: tuple[PreparedModel, ...]) -> Iterator[tuple[Path, Path]]:
    """Yield each file that a buildspec names: its path as written, or beside what was written, and where it is."""
    for spec, model in zip(loaded.spec.models, prepared, strict=True):
        if spec.path:
            yield spec.path, loaded.resolve(spec.path)
            for name in read_stored(model.path.parent).external:
                yield spec.path.parent / name, loaded.resolve(spec.path.parent / name)
        for path in step_files(spec.steps):
            yield path, loaded.resolve(path)
        for case in spec.cases:
            if case.data:
                yield from _data(loaded, case.data)


def _data(loaded: LoadedSpec, path: Path) -> Iterator[tuple[Path, Path]]:
    there = loaded.resolve(path)
    if there.is_dir():
        yield from ((path / file.relative_to(there), file) for file in sorted(there.rglob("*")) if file.is_file())
    else:
        yield path, there


def _require_small(files: tuple[StoredFile, ...], where: str) -> None:
    sizes = {file.path: file.file.stat().st_size for file in files}
    largest = max(sizes, key=lambda path: sizes[path])
    total = sum(sizes.values())
    if sizes[largest] > LARGEST_FILE or total > LARGEST_TOTAL or len(files) > MOST_FILES:
        what = f"{counted(len(files), 'file')} of {total:,} bytes, the largest {largest} with {sizes[largest]:,}"
        why = f"{MOST_FILES} files of {LARGEST_TOTAL:,} bytes are the most, {LARGEST_FILE:,} for each"
        hint = "leave out --upload-models: the models then stay here, and only what they need is compiled at GitHub"
        raise PlanError("upload-too-large", what, where=where, why=why, hint=hint)


def _stays(where: str, why: str, hint: str) -> PlanError:
    return PlanError("plan-cannot-travel", "can be built on this machine alone", where=where, why=why, hint=hint)
