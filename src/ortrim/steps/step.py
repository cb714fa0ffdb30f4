"""What a step gives back, and what one is given beside the model."""

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import onnx
from google.protobuf.message import DecodeError, EncodeError

from ortrim.base.files import storage_errors
from ortrim.base.scripts import SCRIPTS, Python, ScriptCrash, environment_with, packages_folder, run_script
from ortrim.errors import ModelError, ToolError
from ortrim.models.full_runtime import FullRuntime
from ortrim.models.graph import SKIP_HINT, Array

Feeds = Mapping[str, Array]
"""Arrays by the names of inputs; strings are arrays of objects, and bfloat16 is the uint16 of its bits."""


@dataclass(frozen=True, kw_only=True)
class Feeding:
    """How inputs of the model before a step become those of the model after it, and the other way.

    `forward` gets all feeds and returns all of the new model's. `back` gets the new feeds and returns those of the old
    model that are to be others than before, because `forward` lost something (a picture rounded to bytes); the outputs
    of the original are then worked out again for them.
    """

    forward: Callable[[Feeds], Feeds]
    back: Callable[[Feeds], Feeds] | None = None


def only(names: Collection[str]) -> Feeding:
    """Return how a model is fed that takes these of the inputs alone."""
    return Feeding(forward=lambda feeds: {name: array for name, array in feeds.items() if name in names})


@dataclass(frozen=True, kw_only=True)
class Appended:
    """A model that stands behind the old one in the new one: `connect` names its inputs' sources, outputs of the old.

    `prefix` stands before the names of its outputs in the new model.
    """

    model: onnx.ModelProto
    connect: Mapping[str, str]
    prefix: str = ""


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """The model after a step, and in words what was done that the counts of nodes and bytes do not show.

    `outputs` gives the old names of outputs that have new ones; `feeding` is None when inputs stay as they are, in
    whatever order. `observed` is the model before the step with more outputs: values inside it that are inputs or
    outputs after the step; `feeding` then finds them among the feeds, and they are what the new outputs are held
    against. An output that the reference does not have fails parity; one that is gone is not looked at. A float output
    of another width is compared in the old one.
    """

    model: onnx.ModelProto
    notes: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    feeding: Feeding | None = None
    observed: onnx.ModelProto | None = None
    appended: Appended | None = None


@dataclass(frozen=True, kw_only=True)
class Workplace:
    """What a step has that starts other programs, or that looks at inputs.

    `folder` is empty, the step's own, and removed afterwards; paths in a buildspec start at `base`; `where` names the
    model and the step in diagnostics. `cases` are the feeds of the model's cases as they are now, by the case's name.
    """

    runtime: FullRuntime
    folder: Path
    base: Path
    where: str
    cases: Mapping[str, Feeds]


STEP_SECONDS: Final = 1800.0
LARGEST_BYTES: Final = 2**31 - 1
"""Of a protobuf message."""


SCRIPT: Final = SCRIPTS / "steps.py"


def runtime_python(place: Workplace) -> Python:
    """Return the Python that has the full ONNX Runtime of the buildspec's version."""
    return Python(words=place.runtime.words, environment=place.runtime.environment)


def packaged_python(name: str, requirements: str, runtime: FullRuntime) -> Python:
    """Return a Python with exactly the pinned `requirements`, installed into the cache first when they are not there.

    It is the full runtime's, whose packages it finds behind them; where the two have the same it is the pinned one.
    """
    folder = packages_folder(name, requirements, python=runtime.python)
    search = os.pathsep.join(map(str, (folder, runtime.packages)))
    return Python(words=runtime.python.isolated, environment={**environment_with(folder), "PYTHONPATH": search})


def ask(
    python: Python,
    step: str,
    request: Mapping[str, object],
    place: Workplace,
    *,
    failed: str = "the step cannot be done to this model",
) -> dict[str, Any]:
    """Run `resources/scripts/steps.py` in `python` and return its answer."""
    asked = {"do": step, **request}
    try:
        answer = run_script(python, SCRIPT, asked, folder=place.folder, timeout_seconds=STEP_SECONDS)
    except ScriptCrash as crash:
        what = f"the program that does the step {crash.ending}"
        raise ModelError("step-crashed", what, where=place.where, why=crash.last_lines, hint=SKIP_HINT) from crash
    except ToolError as error:
        if error.code != "tool-timeout":
            raise
        what = f"the program that does the step {error.what}"
        raise ModelError("step-timeout", what, where=place.where, hint=SKIP_HINT) from error
    if failure := answer.get("failure"):
        raise step_failed(failed, place.where, why=str(failure))
    return answer


def step_failed(what: str, where: str = "", *, why: str = "", hint: str = SKIP_HINT) -> ModelError:
    """Return the diagnostic of a step that cannot be done; the pipeline fills in `where` when it is left open."""
    return ModelError("step-failed", what, where=where, why=why, hint=hint)


def save(model: onnx.ModelProto, path: Path, where: str) -> None:
    """Write a model for another program. Raises `ModelError` (`model-too-large`) or `StorageError`."""
    data = serialized(model, where)
    with storage_errors(path):
        path.write_bytes(data)


def serialized(model: onnx.ModelProto, where: str) -> bytes:
    """Return the bytes of a model, the same for the same model. Raises `ModelError` (`model-too-large`)."""
    try:
        data: bytes = model.SerializeToString(deterministic=True)
    except (EncodeError, ValueError, RuntimeError) as error:
        what = f"the model does not fit into the {LARGEST_BYTES:,} bytes that one file can have"
        raise ModelError("model-too-large", what, where=where, why=str(error), hint=SKIP_HINT) from error
    return data


def load(path: Path, place: Workplace) -> onnx.ModelProto:
    """Read what another program wrote. Raises `ModelError` (`step-failed`)."""
    try:
        model = onnx.load_model(path, format="protobuf", load_external_data=False)
    except (OSError, DecodeError, ValueError) as error:
        raise step_failed("the step wrote no model that can be read", place.where, why=str(error)) from error
    return model
