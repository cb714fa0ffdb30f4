"""Outputs of a model between its steps, held against the original's under the names that these have there."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from numpy.typing import NDArray

from ortrim.core.measurements import OutputParity
from ortrim.core.models import PreparedModel
from ortrim.core.tolerance_spec import Tolerance
from ortrim.pipeline.steps.cases import Feeds, write_feeds
from ortrim.storage.files import storage_errors
from ortrim.tools.full_runtime import FullRuntime
from ortrim.verify.arrays import load_array, save_array
from ortrim.verify.devices.base import SavedOutput
from ortrim.verify.parity import compare
from ortrim.verify.reference import CaseOutputs, SavedOutputs, reference_outputs

FLOATS: Final = ("float16", "float32", "float64")
"""Types that a step may put in each other's place."""


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs models on cases in the full runtime, optimizations off; what they need and leave lies below `folder`."""

    runtime: FullRuntime
    folder: Path

    def outputs(self, model: PreparedModel, cases: Mapping[str, Feeds], name: str) -> SavedOutputs:
        """Return the outputs of all cases; `name` is of files, another for each call. Raises `VerifyError`."""
        inputs = model.facts.inputs
        written = tuple(write_feeds(case, feeds, inputs, self.folder / name) for case, feeds in cases.items())
        return reference_outputs(model, written, self.runtime, self.folder / f"{name}-outputs")


def root_of(output: str) -> str:
    """Return the output of the model that a saved one is of, or is an element, the keys or the values of."""
    return output.removesuffix(".keys").removesuffix(".values").partition("[")[0]


def compared(
    model: str,
    reference: SavedOutputs,
    ours: SavedOutputs,
    names: Mapping[str, str],
    tolerances: Mapping[Any, Tolerance],
) -> tuple[OutputParity, ...]:
    """Compare the outputs that are left, under the reference's `names` by ours; cases that ours lack are left out."""
    cases = {case.name for case in ours.cases}
    looked_at = set(names.values())
    theirs = tuple(
        replace(case, outputs=tuple(each for each in case.outputs if _is_of(each.name, looked_at)))
        for case in reference.cases
        if case.name in cases
    )
    types = {(case.name, each.name): each.element_type for case in theirs for each in case.outputs}
    mine = tuple(_renamed(case, names, types, ours.folder) for case in ours.cases)
    return compare(model, replace(reference, cases=theirs), replace(ours, cases=mine), tolerances)


def _is_of(name: str, outputs: set[str]) -> bool:
    return name in outputs or root_of(name) in outputs


def _renamed(
    case: CaseOutputs, names: Mapping[str, str], types: Mapping[tuple[str, str], str], folder: Path
) -> CaseOutputs:
    outputs = []
    for output in case.outputs:
        renamed = replace(output, name=_name(output.name, names))
        wanted = types.get((case.name, renamed.name), output.element_type)
        outputs.append(_widened(renamed, wanted, folder / case.name))
    return replace(case, outputs=tuple(outputs))


def _name(output: str, names: Mapping[str, str]) -> str:
    if output in names:
        return names[output]
    root = root_of(output)
    return names.get(root, root) + output.removeprefix(root)


def _widened(output: SavedOutput, wanted: str, folder: Path) -> SavedOutput:
    """Return a float output in another width, written anew, where that is what it is to be compared in."""
    if output.file is None or output.element_type == wanted or not {output.element_type, wanted} <= set(FLOATS):
        return output
    array = load_array(folder / output.file).astype(wanted)
    with storage_errors(folder):
        save_array(folder, Path(output.file).stem, array)
    return replace(output, element_type=wanted)


def arrays_of(outputs: SavedOutputs, case: str) -> dict[str, NDArray[Any]]:
    """Return a case's outputs that were saved, by name."""
    found = next(each for each in outputs.cases if each.name == case)
    return {each.name: load_array(outputs.folder / case / each.file) for each in found.outputs if each.file}


def joined(first: SavedOutputs, second: SavedOutputs, prefix: str, folder: Path) -> SavedOutputs:
    """Return the outputs of both, as far as the second has the case, those of the second with a prefix to their names.

    They lie in `folder`, which is made.
    """
    others = {case.name: case for case in second.cases}
    cases = []
    for case in (each for each in first.cases if each.name in others):
        mine = _copied(case, first.folder, folder, "")
        appended = _copied(others[case.name], second.folder, folder, "appended_")
        outputs = (*mine, *(replace(each, name=prefix + each.name) for each in appended))
        cases.append(CaseOutputs(name=case.name, outputs=outputs))
    return SavedOutputs(folder=folder, cases=tuple(cases), quantized=first.quantized)


def _copied(case: CaseOutputs, source: Path, destination: Path, stem: str) -> tuple[SavedOutput, ...]:
    with storage_errors(destination):
        (destination / case.name).mkdir(parents=True, exist_ok=True)
        for output in case.outputs:
            if output.file:
                content = (source / case.name / output.file).read_bytes()
                (destination / case.name / f"{stem}{output.file}").write_bytes(content)
    return tuple(replace(each, file=f"{stem}{each.file}" if each.file else None) for each in case.outputs)
