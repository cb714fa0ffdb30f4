"""The inputs of a model's cases, as arrays by name: as steps change them, and as the runtimes read them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ortrim.core.models import TensorInfo
from ortrim.core.steps_report import CaseLeft
from ortrim.storage.files import sha256_of, storage_errors
from ortrim.verify.arrays import load_array, numpy_type, save_array
from ortrim.verify.cases import Case, shape_text

Feeds = Mapping[str, NDArray[Any]]
SUFFIXES: Final = (".npy", ".strings")


def read_feeds(case: Case, inputs: tuple[TensorInfo, ...]) -> Feeds:
    """Return a case's arrays by the names of the inputs."""
    stems = (case.folder / f"input_{index:03}" for index in range(len(inputs)))
    files = [stem.with_suffix(suffix) for stem in stems for suffix in SUFFIXES if stem.with_suffix(suffix).is_file()]
    return {info.name: load_array(file) for info, file in zip(inputs, files, strict=True)}


def write_feeds(name: str, feeds: Feeds, inputs: tuple[TensorInfo, ...], folder: Path) -> Case:
    """Write arrays in the order of the inputs; return the case, whose folder lies below `folder`."""
    place = folder / name
    with storage_errors(place):
        place.mkdir(parents=True)
        files = [save_array(place, f"input_{index:03}", feeds[info.name]) for index, info in enumerate(inputs)]
        listing = "\n".join(f"{file.name} {sha256_of(file)}" for file in files)
    return Case(name=name, folder=place, digest=hashlib.sha256(listing.encode()).hexdigest())


def fitting(
    cases: Mapping[str, Feeds], inputs: tuple[TensorInfo, ...]
) -> tuple[dict[str, Feeds], tuple[CaseLeft, ...]]:
    """Split cases into those that a model takes and those that it does not, with the reason."""
    reasons = {name: _misfit(feeds, inputs) for name, feeds in cases.items()}
    kept = {name: feeds for name, feeds in cases.items() if not reasons[name]}
    return kept, tuple(CaseLeft(case=name, reason=reason) for name, reason in reasons.items() if reason)


def _misfit(feeds: Feeds, inputs: tuple[TensorInfo, ...]) -> str:
    """Return why the arrays are not what the inputs take; empty when they are."""
    for info in inputs:
        if info.name not in feeds:
            return f"there is nothing for the input '{info.name}'"
        array = feeds[info.name]
        if array.dtype != numpy_type(info.element_type):
            return f"the input '{info.name}' is {array.dtype}, and the model takes {info.element_type}"
        if info.shape is not None and not _fits(array.shape, info.shape):
            return f"the input '{info.name}' is {list(array.shape)}, and the model takes {shape_text(info.shape)}"
    return ""


def _fits(given: tuple[int, ...], wanted: tuple[int | str | None, ...]) -> bool:
    pairs = zip(given, wanted, strict=False)
    return len(given) == len(wanted) and all(size == taken for size, taken in pairs if isinstance(taken, int))


def as_feeds(arrays: Mapping[str, NDArray[Any]]) -> Feeds:
    """Return arrays in C order, as they are written."""
    return {name: np.asarray(array, order="C") for name, array in arrays.items()}
