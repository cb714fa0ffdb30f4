"""ONNX Runtime's own tools of the buildspec's version, and the model's cases as files for them."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from ortrim.pins.shipped import pin_text
from ortrim.steps.isolation import ask, load, runtime_python, save, step_failed
from ortrim.steps.stepped import Array, Feeds, Workplace
from ortrim.storage.files import storage_errors
from ortrim.tools.environments import packages_folder
from ortrim.tools.scripts import Python

BEFORE: Final = "before.onnx"
AFTER: Final = "after.onnx"
REQUIREMENTS: Final = "requirements/onnx.txt"


def python_with_onnx(place: Workplace) -> Python:
    """Return the full runtime's Python with onnx, put beside a runtime that has a folder of its own.

    Raises `ToolError`, `NetworkError` or `StorageError`, as `packages_folder` does.
    """
    python = runtime_python(place)
    if (place.runtime.packages / "onnx").is_dir():
        return python
    text = pin_text(REQUIREMENTS)
    assert text is not None, "shipped with ortrim"
    search = f"{place.runtime.packages}:{packages_folder('onnx', text)}"
    return Python(words=python.words, environment={**python.environment, "PYTHONPATH": search})


def rewritten(
    model: onnx.ModelProto, script: str, request: Mapping[str, object], place: Workplace, *, python: Python
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Let a script write a model anew, and return that with the script's answer; both models stay in the folder."""
    before, after = place.folder / BEFORE, place.folder / AFTER
    save(model, before, place.where)
    answer = ask(python, script, {"model": str(before), "output": str(after), **request}, place)
    return load(after, place), answer


def write_feeds(cases: Mapping[str, Feeds], place: Workplace) -> tuple[Path, ...]:
    """Write the feeds of cases as `.npz` files; strings as arrays of text, which hold no Python objects.

    `numpy.savez` does not take inputs of every name: `file` is a parameter of its own.
    """
    paths = tuple(place.folder / f"case_{number}.npz" for number in range(len(cases)))
    for path, feeds in zip(paths, cases.values(), strict=True):
        with storage_errors(path), zipfile.ZipFile(path, "w") as archive:
            for name, array in feeds.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, _plain(array), allow_pickle=False)
    return paths


def accuracy(place: Workplace) -> tuple[str, ...]:
    """Say of each float output how far it is from what it was before the step, on all cases."""
    data = [str(path) for path in write_feeds(place.cases, place)]
    files = {"before": str(place.folder / BEFORE), "after": str(place.folder / AFTER)}
    answer = ask(runtime_python(place), "step_accuracy.py", {**files, "data": data}, place)
    if "words" in answer:
        raise step_failed("the model no longer runs, or did not before", place.where, why=str(answer["words"]))
    return tuple(map(_in_words, answer["outputs"]))


def _in_words(output: Mapping[str, Any]) -> str:
    if output["largest"] is None:
        return f"output '{output['name']}' has another shape, or no numbers"
    noise = "no noise" if output["decibels"] is None else f"{output['decibels']:.1f} dB over the noise"
    words = f"output '{output['name']}': {noise}, largest difference {output['largest']:.3g} of {output['range']:.3g}"
    return words if output["agreement"] is None else f"{words}, {output['agreement']:.1%} of rows have the same largest"


def _plain(array: Array) -> Array:
    return array.astype(np.str_) if array.dtype == object else array
