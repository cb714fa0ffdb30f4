"""What was built for another machine here before, with a runner for it; tests build no runtime of their own."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ortrim.console import Console
from ortrim.core.measurements import OutputParity
from ortrim.executors.results import finished_build, result_of
from ortrim.pipeline.planned import Planned, make_planned
from ortrim.pipeline.targets import executor_for
from ortrim.tasks.options import request_from
from ortrim.verify.devices.base import DEFAULT_REPETITION, Device, RunRequest
from ortrim.verify.parity import compare
from ortrim.verify.reference import CaseOutputs, SavedOutputs, reference_outputs


@dataclass(frozen=True, kw_only=True)
class Built:
    """A finished build for one target, and a runner for it."""

    planned: Planned
    library: Path
    runner: Path


def built_here(target: str, output: Path, spec: Path | None = None) -> Built:
    """Return a build of a buildspec, by default the demo's; skips the test when there is none."""
    console = Console()
    request = request_from(str(spec) if spec else None, target=target, output=str(output))
    planned = make_planned(request, console)
    (one,) = planned.plan.targets
    if not finished_build(one.job).is_dir():
        name = f"-s {spec.name} " if spec else ""
        pytest.skip(f"it was not built for {target} here: invoke build {name}--target {target}")
    with console.step("compile the runner") as step:
        runner = executor_for(planned, one, request, step).run_runner(one.runner)
    return Built(planned=planned, library=result_of(finished_build(one.job)).library, runner=runner)


def request_of(built: Built, number: int) -> RunRequest:
    """Return a run of one of the models with all its cases."""
    return RunRequest(
        runner=built.runner,
        library=built.library,
        model=built.planned.models.converted[number].path,
        cases=built.planned.cases[number],
        repetition=replace(DEFAULT_REPETITION, runs=1, warmup=0),
    )


def parity_on(device: Device, built: Built, folder: Path) -> list[OutputParity]:
    """Run all models on a device and hold their outputs against the full runtime's."""
    found: list[OutputParity] = []
    for number, model in enumerate(built.planned.models.prepared):
        outputs = folder / model.name
        outputs.mkdir()
        ran = device.run(replace(request_of(built, number), outputs=outputs))
        cases = tuple(CaseOutputs(name=case.name, outputs=case.outputs) for case in ran.cases)
        runtime = built.planned.models.runtime
        reference = reference_outputs(model, built.planned.cases[number], runtime, folder / "reference")
        tolerances = built.planned.models.loaded.spec.models[number].tolerances
        found += compare(model.name, reference, SavedOutputs(folder=outputs, cases=cases), tolerances)
    return found
