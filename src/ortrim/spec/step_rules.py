"""What holds between the keys of one step of a model's preparation, and the files that it names."""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from ortrim.core.number_steps import Quantize
from ortrim.core.step_choices import StepChoices
from ortrim.core.step_specs import Extract, Merge, Outputs, Rename, Strip
from ortrim.spec.files import exists
from ortrim.spec.problems import Location, Problem, listed, shown


def step_problems(step: StepChoices, location: Location, folder: Path) -> Iterator[Problem]:
    """Yield what is wrong with a step whose keys and types are right; relative paths are seen from `folder`."""
    yield from _files(step, location, folder)
    match step:
        case Rename():
            yield from _idle(step, ("inputs", "outputs", "nodes", "number_nodes"), location)
        case Outputs():
            yield from _idle(step, ("add", "drop"), location)
            yield from _twice((*step.add, *step.drop), (*location, "drop"))
        case Strip():
            yield from _idle(step, ("metadata", "documentation", "producer", "shapes", "node_names"), location)
            yield from _kept(step, location)
        case Extract():
            yield from _twice(step.inputs, (*location, "inputs"))
            yield from _twice(step.outputs, (*location, "outputs"))
        case Merge():
            yield from _twice(tuple(step.connect.values()), (*location, "connect"))
        case Quantize():
            yield from _calibration(step, location)
        case _:
            pass


def _files(step: StepChoices, location: Location, folder: Path) -> Iterator[Problem]:
    for field in fields(step):
        value = getattr(step, field.name)
        for path in value if isinstance(value, tuple) else (value,):
            if isinstance(path, Path) and not exists(folder / path, folder=False):
                what = f"names {shown(str(path))}, which is not a file"
                hint = "paths are relative to the buildspec's folder"
                yield Problem(reference="step-file-missing", location=(*location, field.name), what=what, hint=hint)


def _idle(step: StepChoices, keys: tuple[str, ...], location: Location) -> Iterator[Problem]:
    if not any(getattr(step, key) for key in keys):
        what, hint = "is told nothing to do", f"give it {listed([repr(key) for key in keys])}, or leave it out"
        yield Problem(reference="idle-step", location=location, what=what, hint=hint)


def _twice(names: tuple[str, ...], location: Location) -> Iterator[Problem]:
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield Problem(reference="duplicate-name", location=location, what=f"has {shown(name)} twice")


def _kept(step: Strip, location: Location) -> Iterator[Problem]:
    if step.keep and not step.metadata:
        what = "has no meaning beside metadata = false, with which all properties stay"
        yield Problem(reference="stray-key", location=(*location, "keep"), what=what)


def _calibration(step: Quantize, location: Location) -> Iterator[Problem]:
    if step.data and step.mode == "dynamic":
        what = "has a meaning only beside mode = 'static'"
        hint = "dynamic quantization finds ranges in every run"
        yield Problem(reference="stray-key", location=(*location, "data"), what=what, hint=hint)
