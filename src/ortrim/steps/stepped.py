"""What a step gives back, and what one is given beside the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from numpy.typing import NDArray

from ortrim.tools.full_runtime import FullRuntime

Array = NDArray[Any]
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
