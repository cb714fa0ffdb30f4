"""A model's file where a buildspec may stand as well, and the sizes of the dimensions that it leaves open."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ortrim.core.buildspec import BuildSpec, LoadedSpec
from ortrim.core.model_spec import CaseSpec, InputSpec, ModelSpec
from ortrim.core.models import TensorInfo
from ortrim.errors import ModelError, UsageError

BUILDSPEC: Final = ".toml"
UNFIT: Final = re.compile(r"[^a-z0-9._-]+")
LONGEST_NAME: Final = 64
Sizes = Mapping[str, int]
"""Of dimensions, by their names, or by `INPUT:AXIS` where they have none."""


def is_buildspec(path: Path) -> bool:
    """Whether a buildspec is meant, and not a model's file."""
    return path.suffix == BUILDSPEC


def require_model(path: Path) -> None:
    """Raise `ModelError` (`model-missing`) when there is no such file."""
    if not path.is_file():
        raise ModelError("model-missing", f"'{path}' is not a file", hint="check the path")


def refuse_sizes(sizes: Sizes) -> None:
    """Raise `UsageError` (`bad-option`) for sizes beside a buildspec."""
    if sizes:
        hint = "the buildspec's cases say the sizes; or give a model's file"
        raise UsageError("bad-option", "does not go with a buildspec", where="--dim", hint=hint)


def check_sizes(sizes: Sizes, known: Sequence[str]) -> None:
    """Raise `UsageError` (`bad-option`) for the size of a dimension that the model does not leave open."""
    for name in sizes:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"the model leaves open: {', '.join(known) or 'none'}"
            raise UsageError("bad-option", f"the model leaves no dimension {name!r} open", where="--dim", hint=hint)


def open_sizes(inputs: Sequence[TensorInfo]) -> tuple[str, ...]:
    """Return how the dimensions that inputs leave open are named, each once."""
    return tuple(
        dict.fromkeys(
            size or f"{info.name}:{axis}"
            for info in inputs
            for axis, size in enumerate(info.shape or ())
            if not isinstance(size, int)
        )
    )


def spec_of_model(path: Path, sizes: Sizes) -> LoadedSpec:
    """Return a buildspec of one model with one case of these sizes, 1 where none is given.

    Raises `ModelError` (`model-missing`, and as `read_onnx` does) and `UsageError` (`bad-option`).
    """
    require_model(path)
    inputs = _inputs(path) if sizes else ()
    check_sizes(sizes, open_sizes(inputs))
    name = UNFIT.sub("-", path.stem.lower()).strip("._-")[:LONGEST_NAME] or "model"
    case = CaseSpec(
        name="default",
        dimensions={name: size for name, size in sizes.items() if _is_name(name, inputs)},
        inputs={info.name: InputSpec(shape=_shape(info, sizes)) for info in inputs if _has_nameless(info, sizes)},
    )
    model = ModelSpec(name=name, path=Path(path.name), cases=(case,))
    return LoadedSpec(spec=BuildSpec(name=name, models=(model,)), file=path)


def _inputs(path: Path) -> tuple[TensorInfo, ...]:
    from ortrim.models.onnx_reading import facts_of, read_onnx  # noqa: PLC0415 - it imports onnx

    where = str(path)
    return facts_of(read_onnx(path, where), sha256="", size_bytes=path.stat().st_size, where=where).inputs


def _is_name(name: str, inputs: Sequence[TensorInfo]) -> bool:
    return any(name in (info.shape or ()) for info in inputs)


def _has_nameless(info: TensorInfo, sizes: Sizes) -> bool:
    return any(size is None and f"{info.name}:{axis}" in sizes for axis, size in enumerate(info.shape or ()))


def _shape(info: TensorInfo, sizes: Sizes) -> tuple[int, ...]:
    return tuple(
        size if isinstance(size, int) else sizes.get(size or f"{info.name}:{axis}", 1)
        for axis, size in enumerate(info.shape or ())
    )
