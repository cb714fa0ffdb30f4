"""What one run takes along to another machine, and how that machine's paths come into the runner's command line."""

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ortrim.storage.files import sha256_of, storage_errors
from ortrim.verify.devices.base import RunRequest

DIGITS: Final = 24
"""Of the digest that names a folder: what changed gets another name, what did not is there already."""
LIBRARY: Final = "library.so"
LINKED: Final = "library.a"
"""What the runner calls the static library that it was linked with; nothing lies there."""
ONNX: Final = ".onnx"
FACTS_FILE: Final = "facts.json"
"""Lies beside a prepared model and is ours alone."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Payload:
    """The files by their names below a folder of the machine, and the request in that machine's paths.

    `executable` is the runner's name among the files.
    """

    files: Mapping[str, Path]
    executable: str
    request: RunRequest


def make_payload(request: RunRequest, folder: str, outputs: str) -> Payload:
    """Return what has to lie below `folder`, an absolute folder of the machine, for a run that saves to `outputs`.

    Names are made of digests of contents, so that equal names are equal files. Raises `StorageError` for a file that
    cannot be read.
    """
    linked = request.library.suffix == Path(LINKED).suffix
    groups = [
        _group({"runner": request.runner}),
        _group({} if linked else {LIBRARY: request.library, **{path.name: path for path in request.companions}}),
        _group(_model_files(request.model)),
        *(_group(_below(case.folder)) for case in request.cases),
    ]
    runner, library, model, *cases = (Path(folder) / name for name, _ in groups)
    there = dataclasses.replace(
        request,
        runner=runner / "runner",
        library=Path(folder) / LINKED if linked else library / LIBRARY,
        companions=tuple(library / path.name for path in request.companions),
        model=model / _model_name(request.model),
        cases=tuple(dataclasses.replace(case, folder=at) for case, at in zip(request.cases, cases, strict=True)),
        outputs=Path(outputs) if request.outputs else None,
    )
    files = {f"{name}/{inner}": path for name, group in groups for inner, path in group.items()}
    return Payload(files=MappingProxyType(files), executable=f"{groups[0][0]}/runner", request=there)


def _group(files: Mapping[str, Path]) -> tuple[str, Mapping[str, Path]]:
    """Return the name of a folder that holds these files, and the files."""
    lines = []
    for name, path in sorted(files.items()):
        with storage_errors(path):
            lines.append(f"{name}\0{sha256_of(path)}")
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()[:DIGITS], files


def _model_files(model: Path) -> dict[str, Path]:
    """Return a model and, for one in ONNX format, the files beside it, which may hold its weights."""
    beside = _below(model.parent) if model.suffix == ONNX else {}
    others = {name: path for name, path in beside.items() if name not in {model.name, FACTS_FILE}}
    return {**others, _model_name(model): model}


def _model_name(model: Path) -> str:
    """Return the name of a model on the machine; the runtime tells the formats apart by the ending."""
    return model.name if model.suffix == ONNX else f"model{model.suffix}"


def _below(folder: Path) -> dict[str, Path]:
    with storage_errors(folder):
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {path.relative_to(folder).as_posix(): path for path in paths}
