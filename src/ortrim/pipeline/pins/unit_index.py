"""Making the index of units that pruned builds rest on, and proving it on a buildspec."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ortrim.binaries.differences import differences, differs_in_order_alone, differs_in_what_was_not_written
from ortrim.console import Console, counted
from ortrim.core.artifacts import CompiledUnits
from ortrim.core.operator_config import render_config
from ortrim.core.operators import RequiredOperators
from ortrim.core.plan import BuildJob
from ortrim.core.units import UnitIndex, render_index
from ortrim.errors import BuildError
from ortrim.executors.finishing import finish
from ortrim.executors.native import NativeExecutor, require_success
from ortrim.pins.shipped import writable_pins_folder
from ortrim.pipeline.builders import executor_for
from ortrim.pipeline.converted import Request
from ortrim.pipeline.planned import make_planned
from ortrim.planning import with_arguments
from ortrim.storage.files import write_atomically

EVERYTHING: Final = render_config(RequiredOperators(no_operators_means_all=True))


@dataclass(frozen=True, kw_only=True)
class IndexMade:
    """The index as written to `path`, and what it came to for the buildspec that proved it.

    `same_bytes` is false when the two libraries differ in the linker's own tables.
    """

    path: Path
    index: UnitIndex
    units: CompiledUnits
    same_bytes: bool


def make_unit_index(request: Request, console: Console) -> tuple[IndexMade, ...]:
    """Build each target in full, write the index of it, and check that a pruned library of the buildspec is the same.

    Takes as long as upstream's own build. Raises what a build raises, and `BuildError` (`pruning-differs`): the index
    is then not written.
    """
    planned = make_planned(request, console)
    made = []
    for target in planned.plan.targets:
        with console.step(f"index {target.job.target.identifier}") as step:
            executor = executor_for(planned, target, request, step)
            everything = with_arguments(replace(target.job, operator_config=EVERYTHING, without_types=()))
            index = _full_index(executor, everything)
            step.note(f"{counted(len(index.units), 'file')}, {counted(len(index.kernels), 'operator')}")
            # With the same arguments, ML operators and all: in the same tree, so that little is compiled again.
            units, same = _proved(executor, replace(everything, operator_config=target.job.operator_config), index)
            path = writable_pins_folder() / "units" / f"{index.variant.stem}.json"
            write_atomically(path, render_index(index))
        made.append(IndexMade(path=path, index=index, units=units, same_bytes=same))
    return tuple(made)


def _full_index(executor: NativeExecutor, job: BuildJob) -> UnitIndex:
    """Compile all operators with all types: what they need is what any fewer of them can need."""
    with executor.on_tree(job) as demand:
        require_success(job, demand.compile_all(), executor.log)
        return demand.index()


def _proved(executor: NativeExecutor, job: BuildJob, index: UnitIndex) -> tuple[CompiledUnits, bool]:
    """Link the job's library from everything and from the selected units; whether the two are the same, byte for byte.

    What differs in the linker's own tables alone passes: in their order, or in entries that it does not write.
    """
    library, library_map = (executor.log.parent / name for name in ("unpruned.so", "unpruned.map"))
    with executor.on_tree(job) as demand:
        linked = demand.upstream.paths.build / job.expected_outputs[0]
        linked_map = demand.upstream.paths.link_map
        require_success(job, demand.compile_all(), executor.log)
        finish(job, demand.upstream.paths)
        library.write_bytes(linked.read_bytes())
        library_map.write_bytes(linked_map.read_bytes() if linked_map.is_file() else b"")
        outcome, units = demand.compile_selected(index)
        require_success(job, outcome, executor.log)
        finish(job, demand.upstream.paths)
        found = differences(library, linked)
        passes = (
            not found
            or (linked_map.is_file() and differs_in_order_alone(found, library_map, linked_map))
            or differs_in_what_was_not_written(found, library, linked)
        )
    if units is None or not passes:
        what = "the library of the selected files is not the one of all files"
        why = "\n".join(found) or "the selected files do not link"
        raise BuildError("pruning-differs", what, where=job.target.identifier, why=why, hint=f"compare {library}")
    library.unlink()
    library_map.unlink()
    return units, not found
